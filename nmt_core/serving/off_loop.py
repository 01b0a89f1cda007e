"""Work off the event loop, so that other calls are answered meanwhile."""

from __future__ import annotations

import asyncio
import functools
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
