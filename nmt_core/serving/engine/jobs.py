"""Jobs: the items of one caller that are computed together with others', and the turns that callers take."""

from __future__ import annotations

import asyncio
import collections
import itertools
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, NamedTuple, TypeVar

_Waiting = TypeVar("_Waiting")

_QUANTUM = 500  # tokens of a client until another client's jobs are looked at
_keys = itertools.count()


class Item(NamedTuple):
    """What is computed for a caller, and its tokens."""

    value: Any
    tokens: int


class Unfinished(Item):
    """A first result. A second job makes the answer of it, with first results of other callers."""

    __slots__ = ()


class Entry(NamedTuple):
    """An item that was admitted: its key in the work, and its number in its job."""

    key: int
    job: Any
    number: int
    item: Item


@dataclass(eq=False)
class Job:
    """Items of one caller. The first ``taken`` were admitted to the work, ``missing`` items have no answer yet.

    The caller waits for ``future``. A second job answers its ``parent`` instead; ``first`` is the job of the caller,
    which is ``cancelled`` when the caller has gone. ``queue`` is where the job waits.
    """

    client: str
    items: Sequence[Item]
    deadline: float | None = None
    future: asyncio.Future[list[Any]] | None = None
    parent: Entry | None = None
    since: float = field(default_factory=time.monotonic)
    queue: Any = None
    taken: int = 0
    cancelled: bool = False

    def __post_init__(self) -> None:
        self.first: Job = self if self.parent is None else self.parent.job.first
        self.missing = len(self.items)
        self.waiting_tokens = sum([item.tokens for item in self.items])  # of those that were not admitted yet
        self.answers: list[Any] = [None] * len(self.items)

    @property
    def cost(self) -> int:
        """Tokens of the next item."""
        return self.items[self.taken].tokens

    def take(self, room: int, *, most: int) -> list[Entry]:
        """The next item, and more of them, ``most`` in all, that have room and belong to one turn of the client."""
        begin, items = self.taken, self.items
        used, end = items[begin].tokens, begin + 1
        last, room = min(begin + most, len(items)), min(room, _QUANTUM)
        while end < last and used + items[end].tokens <= room:
            used += items[end].tokens
            end += 1
        self.taken = end
        self.waiting_tokens -= used
        return [Entry(next(_keys), self, number, items[number]) for number in range(begin, end)]

    def answer(self, number: int, value: Any) -> list[Job]:
        """Note an answer; the caller's job, once it has all of them."""
        self.answers[number] = value
        self.missing -= 1
        if self.missing:
            return []
        return [self] if self.parent is None else self.parent.job.answer(self.parent.number, value)


class RoundRobin(Generic[_Waiting]):
    """The first job is that of the client whose turn it is. A turn ends when ``quantum`` tokens of it are used."""

    def __init__(self, quantum: int = _QUANTUM) -> None:
        self._quantum = quantum
        self._jobs: collections.OrderedDict[str, collections.deque[_Waiting]] = collections.OrderedDict()
        self._used = 0

    def __bool__(self) -> bool:
        return bool(self._jobs)

    def __iter__(self) -> Iterator[_Waiting]:
        for jobs in self._jobs.values():
            yield from jobs

    @property
    def clients(self) -> list[str]:
        """The clients that have jobs, in the order of their turns."""
        return list(self._jobs)

    def put(self, client: str, job: _Waiting) -> None:
        """Behind the client's other jobs; a new client has the last turn."""
        self._jobs.setdefault(client, collections.deque()).append(job)

    def first(self, client: str | None = None) -> _Waiting:
        """The next job: of that client, or of the one whose turn it is."""
        return self._jobs[next(iter(self._jobs)) if client is None else client][0]

    def use(self, tokens: int) -> None:
        """Count work that was taken from the first job."""
        self._used += tokens
        if self._used >= self._quantum:
            self._used = 0
            self._jobs.move_to_end(next(iter(self._jobs)))

    def remove(self, client: str, job: _Waiting) -> bool:
        """Take a job out, wherever it is; False if it is not there."""
        jobs = self._jobs.get(client, collections.deque())
        if job not in jobs:
            return False
        jobs.remove(job)
        if not jobs:
            if next(iter(self._jobs)) == client:
                self._used = 0
            del self._jobs[client]
        return True
