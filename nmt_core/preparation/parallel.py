"""One function over many items by several workers, answers in order; each worker makes the function once."""

from __future__ import annotations

import functools
import platform
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Generic, TypeVar

from nmt_core.jobs.workers import Engine, LocalWorkers
from nmt_core.version import VERSION

Item = TypeVar("Item")
Answer = TypeVar("Answer")


def map_ordered(
    make: Callable[[], Callable[[Item], Answer]], items: Iterable[Item], *, jobs: int, engine: Engine = LocalWorkers
) -> Iterator[Answer]:
    """The answers of ``make()`` to the items; ``make`` must be picklable where there are several jobs."""
    with engine(functools.partial(_Worker, make), jobs) as workers:
        yield from workers.map(items)


class _Worker(Generic[Item, Answer]):
    """Holds the function; its answers depend on the versions of the programs."""

    def __init__(self, make: Callable[[], Callable[[Item], Answer]], number: int) -> None:
        self._function = make()

    @property
    def description(self) -> dict[str, Any]:
        """The versions of this software and of Python, which has the tables of Unicode."""
        return {"version": VERSION, "python": platform.python_version()}

    def __call__(self, item: Item) -> Answer:
        """Do one item."""
        return self._function(item)
