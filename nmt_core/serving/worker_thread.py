"""Threads for work that would keep the event loop from answering others."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import ParamSpec, TypeVar

_Arguments = ParamSpec("_Arguments")
_Result = TypeVar("_Result")

_SHORT = 0.0002  # seconds
_NICENESS = 10  # a ninth of the time of a busy core beside a thread of the usual priority


class WorkerThread:
    """One thread, which does one thing after the other. Its work comes in small pieces.

    On Linux the event loop and the models have the cores before it: large requests are what it works on.
    """

    def __init__(self, name: str) -> None:
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix=name, initializer=_yield_to_others)

    async def run(
        self, function: Callable[_Arguments, _Result], *arguments: _Arguments.args, **options: _Arguments.kwargs
    ) -> _Result:
        """Call a function in the thread, and wait for its result. Raises what it raises."""

        def work() -> _Result:
            with SWITCHING_OFTEN:
                return function(*arguments, **options)

        return await asyncio.get_running_loop().run_in_executor(self._thread, work)

    def close(self) -> None:
        """Accept no more work; what was accepted is done."""
        self._thread.shutdown(wait=False)


def _yield_to_others() -> None:
    """Lower the priority of this thread, unless it is lower already or the system does not let us."""
    if sys.platform != "linux":  # elsewhere it is that of all threads
        return
    thread = threading.get_native_id()
    with contextlib.suppress(OSError):  # system calls may be filtered
        if os.getpriority(os.PRIO_PROCESS, thread) < _NICENESS:
            os.setpriority(os.PRIO_PROCESS, thread, _NICENESS)


class _SwitchInterval:
    """The interpreter's switch interval: shorter while a thread does long work, so that the event loop waits less.

    Models release the global interpreter lock by themselves, but for moments, after which they have it again.
    """

    def __init__(self) -> None:
        self._working, self._usual, self._changed = 0, 0.0, threading.Lock()

    def __enter__(self) -> None:
        self._count(1)

    def __exit__(self, *error: object) -> None:
        self._count(-1)

    def _count(self, more: int) -> None:
        with self._changed:
            if not self._working:
                self._usual = sys.getswitchinterval()
            self._working += more
            sys.setswitchinterval(min(_SHORT, self._usual) if self._working else self._usual)


SWITCHING_OFTEN = _SwitchInterval()
"""Within blocks of it, of any thread, Python changes between threads more often."""
