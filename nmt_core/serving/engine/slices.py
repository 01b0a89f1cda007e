"""A long computation that is done in slices of time, with other work in between: of a device, or off the event loop."""

from __future__ import annotations

import asyncio
import functools
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Generic, TypeVar

from nmt_core.base.pauses import held_up_by

SLICE = 0.02
"""Seconds of a slice, for which others wait."""

SMALL = 1 << 16
"""Bytes of a request and its answer that the event loop may work through itself."""

_OFF_LOOP = 0.005  # seconds, after which another request may have the thread
_THREAD = ThreadPoolExecutor(max_workers=1, thread_name_prefix="off-loop")  # more would compete for the interpreter
_Result = TypeVar("_Result")


class _Clock(threading.local):
    """Of each thread."""

    rested = 0.0


_CLOCK = _Clock()


def working_time() -> float:
    """Seconds of a clock that stands still while this thread's computation rests between slices."""
    return time.monotonic() - _CLOCK.rested


class _GivenUp(BaseException):
    """Ends a computation whose result nobody waits for."""


class Sliced(Generic[_Result]):
    """``compute`` in a thread of its own, which runs only while ``advance`` is waited for.

    A slice ends at the first place where ``nmt_core.base.pauses`` lets computations pause, after its time.
    """

    def __init__(self, compute: Callable[[], _Result]) -> None:
        self._compute = compute
        self._future: Future[_Result] = Future()
        self._end = 0.0
        self._given_up = False
        self._resumes, self._rests = threading.Semaphore(0), threading.Semaphore(0)
        self._thread: threading.Thread | None = None

    def advance(self, seconds: float) -> bool:
        """Compute for that time; whether it has ended."""
        self._end = time.monotonic() + seconds
        if self._thread is None:
            self._thread = threading.Thread(target=self._work, name="sliced", daemon=True)
            self._thread.start()
        self._resumes.release()
        self._rests.acquire()
        return self._future.done()

    def result(self) -> _Result:
        """What came of it, once. Raises what it has raised."""
        future, self._future = self._future, Future()
        try:
            return future.result()
        finally:
            del future  # an exception would hold it, and itself, until garbage is searched for

    def give_up(self, *, wait: bool = False) -> None:
        """Let it end where it is; when this returns it has, if that is to be waited for."""
        self._given_up = True
        self._resumes.release()
        if wait and self._thread is not None:
            self._thread.join()

    def _work(self) -> None:
        try:
            self._rest()
            with held_up_by(self._hold):
                self._future.set_result(self._compute())
        except BaseException as error:  # raised again where the result is asked for
            self._future.set_exception(error)
        finally:
            del self._compute  # a thread may hold this object for a moment longer; what it has computed from can go
            self._rests.release()

    def _hold(self) -> None:
        if time.monotonic() >= self._end:
            self._rests.release()
            self._rest()

    def _rest(self) -> None:
        begin = time.monotonic()
        self._resumes.acquire()
        _CLOCK.rested += time.monotonic() - begin
        if self._given_up:
            raise _GivenUp


async def off_loop(size: float, function: Callable[..., _Result], *arguments: Any) -> _Result:
    """Call a function of something of so many bytes: a small one at once, a large one in slices, in turns with others.

    Raises what the function raises. When nobody waits any more, the function ends at its next slice.
    """
    if size <= SMALL:
        return function(*arguments)
    loop, work = asyncio.get_running_loop(), Sliced(functools.partial(function, *arguments))
    try:
        while not await loop.run_in_executor(_THREAD, work.advance, _OFF_LOOP):
            pass
        return work.result()
    finally:
        work.give_up()
        del work  # which an exception would hold, and with it the request
