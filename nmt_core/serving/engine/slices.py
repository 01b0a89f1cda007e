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
from nmt_core.base.round_robin import RoundRobin

SLICE = 0.02
"""Seconds of a slice, for which others wait."""

SMALL = 1 << 16
"""Bytes of a request and its answer that the event loop may work through itself."""

_OFF_LOOP = 0.005  # seconds, after which another request may have the thread
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


class _OffLoop:
    """Slices off the event loop, one at a time: more would compete for the interpreter.

    Clients take turns, and the computations of each client.
    """

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="off-loop")
        self._lock = threading.Lock()
        self._waiting: RoundRobin[tuple[str, Sliced[Any], Future[bool]]] = RoundRobin(1)

    def advance(self, client: str, work: Sliced[Any]) -> Future[bool]:
        """Whether the work has ended after its next slice."""
        ended: Future[bool] = Future()
        with self._lock:
            self._waiting.put(client, (client, work, ended))
        self._thread.submit(self._slice)
        return ended

    def _slice(self) -> None:
        with self._lock:
            waiting = client, work, ended = self._waiting.first()
            self._waiting.use(1)
            self._waiting.remove(client, waiting)
        if ended.set_running_or_notify_cancel():
            try:
                ended.set_result(work.advance(_OFF_LOOP))
            except Exception as error:  # such as one that no thread can be started
                ended.set_exception(error)


_OFF = _OffLoop()


async def off_loop(client: str, size: float, function: Callable[..., _Result], *arguments: Any) -> _Result:
    """Call a function of something of so many bytes: a small one at once, a large one in slices, in turns with others.

    Raises what the function raises. When nobody waits any more, the function ends at its next slice.
    """
    if size <= SMALL:
        return function(*arguments)
    work = Sliced(functools.partial(function, *arguments))
    try:
        while not await asyncio.wrap_future(_OFF.advance(client, work)):
            pass
        return work.result()
    finally:
        work.give_up()
        del work  # which an exception would hold, and with it the request
