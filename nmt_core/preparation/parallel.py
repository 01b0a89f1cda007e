"""One function over many items in several processes, answers in order; each process makes the function once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures.process import BrokenProcessPool
from typing import Any, TypeVar

from nmt_core.errors import NmtError
from nmt_core.processes import ask_in_order, open_pool

Item = TypeVar("Item")
Answer = TypeVar("Answer")


def map_ordered(make: Callable[[], Callable[[Item], Answer]], items: Iterable[Item], *, jobs: int) -> Iterator[Answer]:
    """The answers of ``make()`` to the items; ``make`` must be picklable where there are several jobs."""
    if jobs == 1:
        yield from map(make(), items)
        return
    pool = open_pool(jobs, _begin, make)
    try:
        for future in ask_in_order(lambda item: pool.submit(_do, item), items, jobs=jobs):
            yield future.result()
    except BrokenProcessPool as error:
        raise NmtError("a worker process died (out of memory?); start again with fewer --jobs") from error
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


_make: Callable[[], Callable[[Any], Any]] | None = None
_function: Callable[[Any], Any] | None = None


def _begin(make: Callable[[], Callable[[Any], Any]]) -> None:
    global _make
    _make = make


def _do(item: Any) -> Any:
    global _function
    assert _make is not None
    try:
        if _function is None:
            _function = _make()
        return _function(item)
    except NmtError as error:
        raise NmtError(str(error)) from None  # other errors of ours cannot be sent to another process
