"""Workers on other machines, or in processes of a cluster: which one does what, and what happens when one is lost.

A lost worker's items go to others, and a new worker takes its place. Each of them may have been the cause, and is
done alone from then on; one that was under way three times is taken for it. How workers are started and asked is
the cluster's (``ray_cluster.py``).
"""

from __future__ import annotations

import collections
import heapq
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Generic, NamedTuple, Protocol, Self, TypeVar

from nmt_core.base.errors import NmtError
from nmt_core.jobs.journal import difference

Item = TypeVar("Item")
Answer = TypeVar("Answer")
_AHEAD = 2  # items that a worker has been given, so that it is never idle
_KEPT = 4  # items for each worker that are under way, or whose answers wait for earlier ones
_TRIES = 3
_LONGEST_START = 600.0  # seconds


class Lost(Exception):
    """The worker has ended without an answer."""


class Cluster(Protocol):
    """Starts workers and asks them. A *question* is something hashable that has an answer later."""

    def start(self, number: int) -> Any:
        """Begin worker ``number``; it may be ready much later."""

    def describe(self, worker: Any) -> Any:
        """The question what the worker's answers depend on."""

    def ask(self, worker: Any, item: Any) -> Any:
        """The question what the item's answer is."""

    def wait(self, questions: Sequence[Any], seconds: float) -> Sequence[Any]:
        """Some of the questions that have an answer, or whose worker is lost; none after ``seconds``."""

    def answer(self, question: Any) -> Any:
        """Its answer. Raises Lost, and NmtError for what went wrong in the worker."""

    def close(self) -> None:
        """End all workers."""


class _Given(NamedTuple):
    worker: Any
    place: int
    item: Any


class _Left:
    """Items that no worker has: those of lost workers (``again``), and those that were not taken yet.

    ``tries`` counts by place how often an item was under way when its worker was lost.
    """

    def __init__(self, items: Iterable[Any]) -> None:
        self._new = enumerate(items)
        self._more = True
        self.again: list[tuple[int, Any]] = []  # a heap, by place
        self.tries: collections.Counter[int] = collections.Counter()

    def __bool__(self) -> bool:
        return self._more or bool(self.again)

    def take(self, *, new: bool) -> tuple[int, Any] | None:
        """The next place and item, None where there is none; where not ``new``, of lost workers only."""
        if self.again:
            return heapq.heappop(self.again)
        if not (new and self._more):
            return None
        found = next(self._new, None)
        self._more = found is not None
        return found

    def put_back(self, given: _Given) -> None:
        """Have the item of a lost worker done again. Raises NmtError for one that has ended its workers."""
        self.tries[given.place] += 1
        if self.tries[given.place] == _TRIES:
            first = getattr(given.item, "first", None)
            lines = f"item {given.place + 1}" if first is None else f"the shard that begins at line {first:,}"
            problem = f"{lines} has ended its worker {_TRIES} times (out of memory?); what is finished stays finished"
            raise NmtError(f"{problem}: start the same command again, with fewer --jobs")
        heapq.heappush(self.again, (given.place, given.item))


class RemoteWorkers(Generic[Item, Answer]):
    """``jobs`` workers of a cluster."""

    def __init__(self, cluster: Cluster, *, jobs: int) -> None:
        self._cluster, self._jobs = cluster, jobs
        self._description: dict[str, Any] | None = None
        self._opening: dict[Any, Any] = {}  # workers by the question that they have not answered
        self._ready: dict[Any, collections.deque[Any]] = {}  # questions that a worker has been given
        self._given: dict[Any, _Given] = {}
        self._started = self._never_ready = 0
        for _ in range(jobs):
            self._start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._cluster.close()

    @property
    def description(self) -> dict[str, Any]:
        """What the workers say of themselves; one that says something else is refused."""
        while self._description is None:
            self._wait()
        return self._description

    def map(self, items: Iterable[Item]) -> Iterator[Answer]:
        """The answers in the order of the items, of which only a few are taken ahead."""
        left = _Left(items)
        answers: dict[int, Answer] = {}
        due = 0
        while True:
            self._hand_out(left, waiting=len(answers))
            if not (left or self._given):
                return
            self._collect(left, answers)
            while due in answers:
                yield answers.pop(due)
                due += 1

    def _hand_out(self, left: _Left, *, waiting: int) -> None:
        """Give workers something to do; ``waiting`` answers are there that nobody has taken yet."""
        for worker, own in self._ready.items():
            while len(own) < _AHEAD:
                if own and (left.again or left.tries[self._given[own[0]].place]):
                    break  # what may end a worker is done alone
                room = waiting + len(left.again) + len(self._given) < _KEPT * self._jobs
                taken = left.take(new=room)
                if taken is None:
                    break
                question = self._cluster.ask(worker, taken[1])
                self._given[question] = _Given(worker, *taken)
                own.append(question)

    def _collect(self, left: _Left, answers: dict[int, Any]) -> None:
        """Wait for answers, and put them with the others."""
        for question in self._wait():
            given = self._given.get(question)
            if given is None:  # of a worker whose loss is known
                continue
            try:
                answers[given.place] = self._cluster.answer(question)
            except Lost:
                self._take_back(given, left)
                continue
            del self._given[question]
            self._ready[given.worker].remove(question)

    def _start(self) -> None:
        worker = self._cluster.start(self._started)
        self._started += 1
        self._opening[self._cluster.describe(worker)] = worker

    def _wait(self) -> list[Any]:
        """Wait until something happens; the questions that concern items."""
        found = self._cluster.wait([*self._given, *self._opening], _LONGEST_START)
        if not found and not self._ready:
            minutes = _LONGEST_START / 60
            raise NmtError(f"no worker began within {minutes:.0f} minutes; has the cluster a CPU that is free?")
        for question in found:
            if question in self._opening:
                self._open(question)
        return [question for question in found if question in self._given]

    def _open(self, question: Any) -> None:
        worker = self._opening.pop(question)
        try:
            description = self._cluster.answer(question)
        except Lost:
            self._never_ready += 1
            if self._never_ready >= _TRIES * self._jobs:
                problem = (
                    "workers end while they begin (out of memory?); start the same command again, with fewer --jobs"
                )
                raise NmtError(problem) from None
            self._start()
            return
        self._description = self._description or description
        if description != self._description:
            before, now = difference(self._description, description)
            raise NmtError(
                f"two workers differ, so that their numbers would: {before}, and {now}; take machines that are alike"
            )
        self._ready[worker] = collections.deque()

    def _take_back(self, lost: _Given, left: _Left) -> None:
        """Have the items of a lost worker done by others, and a new worker begun."""
        for given in [self._given.pop(question) for question in self._ready.pop(lost.worker)]:
            left.put_back(given)
        self._start()
