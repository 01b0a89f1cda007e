"""Work beside the event loop that is too long for it: others are answered meanwhile."""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import ParamSpec, TypeVar

_Arguments = ParamSpec("_Arguments")
_Result = TypeVar("_Result")

_USUALLY, _MEANWHILE = 0.005, 0.001


class Aside:
    """A thread, and its name. What it does comes in pieces, or belongs to few."""

    def __init__(self, name: str) -> None:
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix=name)

    async def call(
        self, function: Callable[_Arguments, _Result], *arguments: _Arguments.args, **options: _Arguments.kwargs
    ) -> _Result:
        """Call a function there, and wait for it."""

        def work() -> _Result:
            with _TURNS:
                return function(*arguments, **options)

        return await asyncio.get_running_loop().run_in_executor(self._thread, work)

    def close(self) -> None:
        """Take nothing more."""
        self._thread.shutdown(wait=False)


class _Turns:
    """While some thread works aside, threads may hold Python for a shorter time before another has its turn.

    Models let go of it all the time by themselves; to take it from them more often makes each call dearer.
    """

    def __init__(self) -> None:
        self._working, self._changed = 0, threading.Lock()

    def __enter__(self) -> None:
        self._count(1)

    def __exit__(self, *error: object) -> None:
        self._count(-1)

    def _count(self, more: int) -> None:
        with self._changed:
            self._working += more
            sys.setswitchinterval(_MEANWHILE if self._working else _USUALLY)


_TURNS = _Turns()
