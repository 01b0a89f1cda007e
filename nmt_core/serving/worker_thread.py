"""Threads for work that would keep the event loop from answering others."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import ParamSpec, TypeVar

_Arguments = ParamSpec("_Arguments")
_Result = TypeVar("_Result")


class WorkerThread:
    """One thread, which does one thing after the other. Its work comes in small pieces."""

    def __init__(self, name: str) -> None:
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix=name)

    async def run(
        self, function: Callable[_Arguments, _Result], *arguments: _Arguments.args, **options: _Arguments.kwargs
    ) -> _Result:
        """Call a function in the thread, and wait for its result. Raises what it raises."""
        work = functools.partial(function, *arguments, **options)
        return await asyncio.get_running_loop().run_in_executor(self._thread, work)

    def close(self) -> None:
        """Accept no more work; what was accepted is done."""
        self._thread.shutdown(wait=False)
