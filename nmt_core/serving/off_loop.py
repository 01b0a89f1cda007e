"""Work off the event loop: of requests in slices, of the server in threads that its end does not wait for."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from nmt_core.serving.engine.slices import Sliced

SMALL = 1 << 16
"""Bytes of a request and its answer that the event loop may work through itself."""

_SLICE = 0.005  # seconds, after which another request may have the thread
_THREAD = ThreadPoolExecutor(max_workers=1, thread_name_prefix="off-loop")  # more would compete for the interpreter
_Result = TypeVar("_Result")


async def off_loop(size: float, function: Callable[..., _Result], *arguments: Any) -> _Result:
    """Call a function of something of so many bytes: a small one at once, a large one in slices, in turns with others.

    Raises what the function raises. When nobody waits any more, the function ends at its next slice.
    """
    if size <= SMALL:
        return function(*arguments)
    loop, work = asyncio.get_running_loop(), Sliced(functools.partial(function, *arguments))
    try:
        while not await loop.run_in_executor(_THREAD, work.advance, _SLICE):
            pass
        return work.result()
    finally:
        work.give_up()
        del work  # which an exception would hold, and with it the request


async def in_own_thread(function: Callable[[], _Result], *, name: str) -> _Result:
    """Call ``function`` in a thread that does not keep the process alive, and wait for it."""
    future: asyncio.Future[_Result] = asyncio.get_running_loop().create_future()
    threading.Thread(target=call_for, args=(future, function), name=name, daemon=True).start()
    return await future


def call_for(future: asyncio.Future[_Result], function: Callable[[], _Result]) -> None:
    """Call ``function`` in this thread; what it returns or raises is handed to those who still wait for ``future``."""

    def arrive() -> None:
        if not future.done():
            settle()

    try:
        settle = functools.partial(future.set_result, function())
    except BaseException as error:  # belongs to the caller
        settle = functools.partial(future.set_exception, error)
    with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits any more
        future.get_loop().call_soon_threadsafe(arrive)
