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
    loop = asyncio.get_running_loop()
    future: asyncio.Future[_Result] = loop.create_future()

    def arrive(settle: Callable[[], None]) -> None:
        if not future.done():
            settle()

    def run() -> None:
        try:
            settle = functools.partial(future.set_result, function())
        except BaseException as error:  # belongs to the caller
            settle = functools.partial(future.set_exception, error)
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits any more
            loop.call_soon_threadsafe(arrive, settle)

    threading.Thread(target=run, name=name, daemon=True).start()
    return await future
