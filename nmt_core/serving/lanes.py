"""What waits and runs on a device: jobs of callers, in lines of equal work, in lanes of equal priority."""

from __future__ import annotations

import asyncio
import collections
import contextlib
import itertools
import time
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from nmt_core.serving.engine.work import Entry, Work
from nmt_core.serving.fair_queue import FairQueue
from nmt_core.serving.time_share import TimeShare

SHARES = {"interactive": 8.0, "long": 2.0, "bulk": 1.0}
"""The lanes, and how much of a busy device's time they have."""

RECENTLY = 2.0  # seconds

Key = TypeVar("Key", bound=Hashable)
"""Names work: that of equal keys is done together."""


@dataclass(eq=False)
class Job:
    """Items of one caller: those before ``taken`` were admitted, ``missing`` have no answer yet.

    ``future`` is what the caller waits for; whoever has the last of the answers hands them over (``deliver``).
    """

    client: str
    items: Sequence[Any]
    tokens: Sequence[int]
    deadline: float | None
    future: asyncio.Future[list[Any]]
    since: float = field(default_factory=time.monotonic)
    taken: int = 0
    gone: bool = False

    def __post_init__(self) -> None:
        self.missing = len(self.items)
        self.waiting_tokens = sum(self.tokens)  # of what was not admitted yet
        self.answers: list[Any] = [None] * len(self.items)

    @property
    def cost(self) -> int:
        """Tokens of the next item."""
        return self.tokens[self.taken]

    def is_late(self, now: float) -> bool:
        """Whether its deadline has passed before any of it was begun."""
        return self.deadline is not None and now > self.deadline and self.taken == 0

    def take(self, *, most: int, room: int, turn: int) -> list[Entry]:
        """Admit the next item, and up to ``most`` in all that have room, until ``turn`` tokens are taken."""
        begin, tokens = self.taken, self.tokens
        used, end = tokens[begin], begin + 1
        last = min(begin + most, len(tokens))
        while end < last and used < turn and used + tokens[end] <= room:
            used += tokens[end]
            end += 1
        self.taken = end
        self.waiting_tokens -= used
        places = range(begin, end)
        return list(map(Entry, itertools.repeat(self), places, self.items[begin:end], tokens[begin:end]))

    def fail(self, error: Exception) -> None:
        """The same error for all that has no answer."""
        self.missing = 0
        self.answers = [error if answer is None else answer for answer in self.answers]


def deliver(jobs: Iterable[Job]) -> None:
    """Hand the answers of jobs to their callers: each event loop is woken once. Called by the thread of a device."""
    of_loop: dict[asyncio.AbstractEventLoop, list[Job]] = {}
    for job in jobs:
        if not job.gone:
            of_loop.setdefault(job.future.get_loop(), []).append(job)
    for loop, some in of_loop.items():
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits any more
            loop.call_soon_threadsafe(_arrive, some)


def _arrive(jobs: Iterable[Job]) -> None:
    for job in jobs:
        if not job.future.done():
            job.future.set_result(job.answers)


class Line(TimeShare, Generic[Key]):
    """The jobs of one key in one lane, and the work they are admitted to."""

    def __init__(self, key: Key) -> None:
        super().__init__()
        self.key = key
        self.work: Work | None = None
        self.waiting: FairQueue[Job] = FairQueue()
        self.running: dict[int, Entry] = {}
        self.suspects: collections.deque[Entry] = collections.deque()
        self.shared = -RECENTLY  # when several clients had something here

    @property
    def clients(self) -> set[str]:
        """Of whom something waits or is done."""
        begun = itertools.chain(self.running.values(), self.suspects)
        return {entry.owner.client for entry in begun}.union(self.waiting.clients)

    @property
    def newcomers(self) -> list[str]:
        """Clients who wait and have nothing running, in the order of their turns."""
        running = {entry.owner.client for entry in self.running.values()}
        return [client for client in self.waiting.clients if client not in running]

    @property
    def idle(self) -> bool:
        """Nothing to do."""
        return not (self.waiting or self.running or self.suspects)

    def jobs(self) -> Iterator[Job]:
        """All of them, those with several items under way several times."""
        yield from self.waiting
        yield from (entry.owner for entry in (*self.running.values(), *self.suspects))


class Lane(TimeShare, Generic[Key]):
    """The lines of one priority, the one whose latest turn was longest ago first."""

    def __init__(self, share: float) -> None:
        super().__init__(share)
        self.waiting_tokens = 0
        self.of_client: collections.Counter[str] = collections.Counter()  # tokens that wait
        self.lines: collections.OrderedDict[Key, Line[Key]] = collections.OrderedDict()

    @property
    def idle(self) -> bool:
        """Nothing to do."""
        return all(line.idle for line in self.lines.values())

    def count(self, client: str, tokens: int) -> None:
        """So many tokens more (or less) wait."""
        self.waiting_tokens += tokens
        self.of_client[client] += tokens
        if self.of_client[client] <= 0:
            del self.of_client[client]

    def share_out(self) -> None:
        """Say what each line has of the lane's time: those of one client alone have together as much as another."""
        clients = {line: line.clients for line in self.lines.values() if not line.idle}
        lines_of = collections.Counter(itertools.chain(*clients.values()))
        least = min((line.used for line in clients), default=0.0)
        for line, some in clients.items():
            share = sum(1.0 / lines_of[client] for client in some)
            line.change(min(1.0, share), least=least)
