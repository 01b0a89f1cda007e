"""Long work beside the event loop that nobody has to wait for when the server ends."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import threading
from collections.abc import Callable
from typing import TypeVar

_Result = TypeVar("_Result")


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
