"""One function over many items in several processes, answers in order, a few items at a time.

Each process makes the function once. Processes are started afresh (``spawn``), since forked ones
inherit the locks of libraries; they end with the program, also when that is killed.
"""

from __future__ import annotations

import collections
import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing.connection import wait
from typing import Any, TypeVar

from nmt_core.errors import NmtError

Item = TypeVar("Item")
Answer = TypeVar("Answer")
_AHEAD = 2  # items that wait for every process, so that none is idle


def map_ordered(make: Callable[[], Callable[[Item], Answer]], items: Iterable[Item], *, jobs: int) -> Iterator[Answer]:
    """The answers of ``make()`` to the items; ``make`` must be picklable where there are several jobs."""
    if jobs == 1:
        yield from map(make(), items)
        return
    context = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(jobs, context, initializer=_begin, initargs=(make,))
    try:
        waiting: collections.deque[Future[Answer]] = collections.deque()
        for item in items:
            waiting.append(pool.submit(_do, item))
            if len(waiting) >= jobs * _AHEAD:
                yield _answer(waiting.popleft())
        while waiting:
            yield _answer(waiting.popleft())
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def _answer(future: Future[Answer]) -> Answer:
    try:
        return future.result()
    except BrokenProcessPool as error:
        raise NmtError("a worker process died (out of memory?); start again with fewer --jobs") from error


_make: Callable[[], Callable[[Any], Any]] | None = None
_function: Callable[[Any], Any] | None = None


def _begin(make: Callable[[], Callable[[Any], Any]]) -> None:
    global _make
    _make = make
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the program itself hears Ctrl-C
    threading.Thread(target=_end_with_the_program, daemon=True).start()


def _end_with_the_program() -> None:
    program = multiprocessing.parent_process()
    if program is not None:
        wait([program.sentinel])
        os._exit(1)


def _do(item: Any) -> Any:
    global _function
    assert _make is not None
    try:
        if _function is None:
            _function = _make()
        return _function(item)
    except NmtError as error:
        raise NmtError(str(error)) from None  # other errors of ours cannot be sent to another process
