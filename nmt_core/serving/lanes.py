"""What waits and runs on a device: jobs of callers, in lines of equal work, in lanes of equal priority."""

from __future__ import annotations

import collections
import time
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from nmt_core.serving.fair_queue import FairQueue
from nmt_core.serving.work import Entry, Work

SHARES = {"interactive": 8.0, "long": 2.0, "bulk": 1.0}
"""The lanes, and how much of a busy device's time they have."""

RECENTLY = 2.0  # seconds


@dataclass(eq=False)
class Job:
    """Items of one caller: those before ``taken`` were admitted, ``missing`` have no answer yet.

    ``deliver`` hands the answers over; it is called once, by whoever has the last of them.
    """

    client: str
    items: Sequence[Any]
    tokens: Sequence[int]
    deadline: float | None
    deliver: Callable[[list[Any]], None]
    since: float = field(default_factory=time.monotonic)
    taken: int = 0
    gone: bool = False

    def __post_init__(self) -> None:
        self.missing = len(self.items)
        self.waiting_tokens = sum(self.tokens)  # of what was not admitted yet
        self.answers: list[Any] = [None] * len(self.items)

    def take(self) -> Entry:
        """The next item, which is admitted."""
        entry = Entry(self, self.taken, self.items[self.taken], self.tokens[self.taken])
        self.taken += 1
        self.waiting_tokens -= entry.tokens
        return entry

    def answer(self, place: int, value: Any) -> None:
        """The answer to one item."""
        self.answers[place] = value
        self.missing -= 1
        if not self.missing and not self.gone:
            self.deliver(self.answers)

    def fail(self, error: Exception) -> None:
        """The same error for all that has no answer."""
        if self.missing and not self.gone:
            self.missing = 0
            self.deliver([error if answer is None else answer for answer in self.answers])


class Line:
    """The jobs of one key in one lane, and the work they are admitted to."""

    def __init__(self, key: Hashable) -> None:
        self.key = key
        self.work: Work | None = None
        self.waiting: FairQueue[Job] = FairQueue()
        self.running: dict[int, Entry] = {}
        self.suspects: collections.deque[Entry] = collections.deque()

    @property
    def idle(self) -> bool:
        """Nothing to do."""
        return not (self.waiting or self.running or self.suspects)

    def jobs(self) -> Iterator[Job]:
        """All of them, those with several items under way several times."""
        yield from self.waiting
        yield from (entry.owner for entry in (*self.running.values(), *self.suspects))


class Lane:
    """The lines of one priority, in the order of their turns, and the device time they have used."""

    def __init__(self, share: float) -> None:
        self.share, self.used, self.last = share, 0.0, -RECENTLY
        self.waiting_tokens = 0
        self.of_client: collections.Counter[str] = collections.Counter()  # tokens that wait
        self.lines: collections.OrderedDict[Hashable, Line] = collections.OrderedDict()

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
