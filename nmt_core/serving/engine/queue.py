"""What waits for a device, and which batch queue uses it next: start-time fair queueing (Goyal, Vin and Cheng 1996).

A batch queue has the jobs of one key in one priority class: they are computed together. Each class has its share of a
busy device (``PRIORITY_WEIGHTS``), and the queues of a class share that, so that the queues that one client alone uses
have together as much as the queue of another client. Idle time earns no credit. Inside a queue, clients take turns.
"""

from __future__ import annotations

import asyncio
import collections
import itertools
import math
import time
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from nmt_core.base.round_robin import RoundRobin
from nmt_core.serving.engine.slices import Sliced
from nmt_core.serving.engine.work import Entry, Item, Work
from nmt_core.serving.errors import busy
from nmt_core.serving.limits import Limits

PRIORITY_WEIGHTS = {"interactive": 8.0, "long": 2.0, "bulk": 1.0}
"""The priority classes, and the weight of each on a busy device."""

SHORT_ITERATION = 0.02
"""Seconds of an iteration while other queues have work, or had some recently."""

RECENTLY = 2.0  # seconds
_LONG_ITERATION = 0.5
_SHARED_STEP, _SHORT_SHARED_STEP = 0.02, 0.01  # of a search that clients share, alone and next to other queues
_QUANTUM = 500  # tokens of a client until another client's jobs are looked at
_AT_ONCE = 2000  # items that enter an iteration: others wait for the lock meanwhile

_keys = itertools.count()

Key = TypeVar("Key", bound=Hashable)
"""Names work: that of equal keys is computed together."""


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
    def next_tokens(self) -> int:
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


class BatchQueue(Generic[Key]):
    """The jobs of one key in one priority class, and the work to which they are admitted.

    ``used`` is the queue's virtual time: its seconds of the device, each divided by the share it had.
    ``sliced`` is an iteration that has begun and not ended. ``retries`` are groups of entries whose iteration failed.
    """

    def __init__(self, key: Key, priority: str) -> None:
        self.key, self.priority = key, priority
        self.work: Work | None = None
        self.sliced: Sliced[list[tuple[int, Any]]] | None = None
        self.waiting: RoundRobin[Job] = RoundRobin(_QUANTUM)
        self.waiting_tokens: collections.Counter[str] = collections.Counter()  # of each client
        self.running: dict[int, Entry] = {}
        self.retries: collections.deque[list[Entry]] = collections.deque()
        self.failures = 0  # of iterations, one after the other
        self.clients: collections.Counter[str] = collections.Counter()  # items that wait or run, of each client
        self.changed = True  # a job came, or was cancelled, since the latest iteration
        self.used, self.share = 0.0, 1.0
        self.last = self.shared = -math.inf  # when the latest iteration ended, and when several clients had items
        self.before, self.latest = 0.0, 0.0  # ``used`` before the latest iteration, and its seconds

    @property
    def idle(self) -> bool:
        """Nothing to do."""
        return not (self.waiting or self.running or self.retries)

    @property
    def running_tokens(self) -> int:
        """What is being computed."""
        return sum(entry.item.tokens for entry in self.running.values())

    def jobs(self) -> Iterator[Job]:
        """All jobs; one with several items under way comes several times."""
        yield from self.waiting
        yield from (entry.job for entries in (self.running.values(), *self.retries) for entry in entries)

    def admit(self, work: Work, seconds: float, now: float) -> tuple[list[Entry], list[Job]]:
        """The items that run from now on, for an iteration of so many seconds, and the jobs that are too late.

        Clients take turns, as far as the room goes; one item enters if nothing runs. A client that has nothing running
        has the overcommitted room, too, for one item. Nobody passes such a client whose item needs more than is left:
        it would wait as long as others come.
        """
        entries: list[Entry] = []
        late: list[Job] = []
        room = work.room(seconds)
        while len(entries) < _AT_ONCE and (job := self._next(None, now, late)) is not None:
            if job.next_tokens > room and self.running:
                break
            found = self.take(job, room, most=_AT_ONCE - len(entries))
            room -= sum(entry.item.tokens for entry in found)
            entries += found
        if self.waiting and self.running and (room := work.overcommit) > 0:
            entries += self._admit_newcomers(room, now, late)
        return entries, late

    def _admit_newcomers(self, room: int, now: float, late: list[Job]) -> list[Entry]:
        running = {entry.job.client for entry in self.running.values()}
        entries: list[Entry] = []
        for client in self.waiting.clients:
            if client in running or (job := self._next(client, now, late)) is None:
                continue
            if job.next_tokens > room:
                break
            room -= job.next_tokens
            entries += self.take(job, room, most=1)
        return entries

    def _next(self, client: str | None, now: float, late: list[Job]) -> Job | None:
        """The next job, of that client or of the one whose turn it is, that is neither late nor cancelled."""
        while self.waiting and (client is None or client in self.waiting.clients):
            job = self.waiting.first(client)
            if not job.first.cancelled and (job.deadline is None or now <= job.deadline or job.taken):
                return job
            self.remove(job)
            if not job.first.cancelled:
                late.append(job)
        return None

    def take(self, job: Job, room: int, *, most: int) -> list[Entry]:
        """The next items of a waiting job, which run from now on: one at least, as far as room and turn go."""
        entries = job.take(room, most=most)
        tokens = sum(entry.item.tokens for entry in entries)
        self.waiting_tokens[job.client] -= tokens
        self.running.update((entry.key, entry) for entry in entries)
        if self.waiting.first() is job:
            self.waiting.use(tokens)
        if job.taken == len(job.items):
            self.waiting.remove(job.client, job)
        return entries

    def retry(self) -> list[Entry]:
        """The next group of those whose iteration failed, which runs from now on; not those whose callers have gone."""
        for entry in self.retries.popleft():
            if entry.job.first.cancelled:
                self.leave(entry.job.client, 1)
            else:
                self.running[entry.key] = entry
        return list(self.running.values())

    def remove(self, job: Job) -> int:
        """Take a job out of the queue; how many of its items waited there."""
        if not self.waiting.remove(job.client, job):
            return 0
        self.waiting_tokens[job.client] -= job.waiting_tokens
        dropped = len(job.items) - job.taken
        self.leave(job.client, dropped)
        return dropped

    def leave(self, client: str, items: int) -> None:
        """So many items of a client were answered, or are dropped."""
        self.clients[client] -= items
        if self.clients[client] <= 0:
            del self.clients[client], self.waiting_tokens[client]


class Queues(Generic[Key]):
    """The batch queues of one engine. Every method is called with the engine's lock held.

    ``limits`` bound the tokens that wait in each priority class, in all and for one client. A batch that is not
    full waits ``limits.delay`` seconds for more, but not while the engine is ``closing``.
    """

    def __init__(self, limits: Limits) -> None:
        self._capacity, self._client_capacity, self._delay = limits.queue, limits.client_work, limits.delay
        self.closing = False
        self.queues: dict[tuple[Key, str], BatchQueue[Key]] = {}
        self.filling: BatchQueue[Key] | None = None  # the thread waits for a fuller batch of it, and for nothing else
        self.unwanted: Callable[[Key], bool] = lambda key: False  # keys that nobody will use again
        self._done, self._spent = 0.0, 0.0  # tokens answered and seconds used, of late

    @property
    def waiting_tokens(self) -> int:
        """How much waits, without what is being computed."""
        return sum(queue.waiting_tokens.total() for queue in self.queues.values())

    @property
    def running_items(self) -> int:
        """Items that are being computed."""
        return sum(len(queue.running) for queue in self.queues.values())

    def put(self, key: Key, priority: str, job: Job) -> BatchQueue[Key]:
        """Let a job wait. Raises RpcError for a full queue, but takes second jobs and those without tokens."""
        if job.parent is None and job.waiting_tokens:
            self._check_capacity(priority, job)
        queue = self.queues.get((key, priority))
        if queue is None:
            queue = self.queues[key, priority] = BatchQueue(key, priority)
        if queue.idle:  # it starts at the minimum of the busy queues, or where the latest ones ended
            busy = [one.used for one in self.queues.values() if not one.idle]
            queue.used = max(queue.used, min(busy) if busy else max(one.used for one in self.queues.values()))
        queue.waiting.put(job.client, job)
        queue.waiting_tokens[job.client] += job.waiting_tokens
        queue.clients[job.client] += len(job.items)
        queue.changed, job.queue = True, queue
        return queue

    def _check_capacity(self, priority: str, job: Job) -> None:
        of_class = [queue.waiting_tokens for queue in self.queues.values() if queue.priority == priority]
        waiting, mine = sum(one.total() for one in of_class), sum(one[job.client] for one in of_class)
        cost = job.waiting_tokens
        if not ((waiting and waiting + cost > self._capacity) or (mine and mine + cost > self._client_capacity)):
            return
        seconds = min(max(waiting * self._spent / self._done, 0.2), 30.0) if self._done else 1.0
        what = f"{waiting} tokens wait" if waiting + cost > self._capacity else f"{mine} tokens of this client wait"
        raise busy(f"the queue is full ({what}); try again later", reason="QUEUE_FULL", retry_after=seconds)

    def cancel(self, job: Job) -> int:
        """Nobody waits for a job any more; how many of its items left the queue."""
        job.cancelled = job.queue.changed = True
        dropped: int = job.queue.remove(job)
        return dropped

    def clear(self) -> list[BatchQueue[Key]]:
        """Forget everything; the queues that there were."""
        queues, self.queues = list(self.queues.values()), {}
        return queues

    def choose(self) -> tuple[BatchQueue[Key] | None, float | None]:
        """The queue that uses the device next, or None and how long to wait for a fuller batch.

        Works that nobody will use again are let go, each as soon as it is idle.
        """
        for place, queue in list(self.queues.items()):
            if queue.idle and self.unwanted(queue.key):
                del self.queues[place]
        busy = [one for one in self.queues.values() if not one.idle]
        _share_out(busy)
        busy.sort(key=lambda one: (one.used, one.last))
        self.filling, waits = None, list[float]()
        for queue in busy:
            wait = self.wait(queue)
            if wait <= 0:
                for one in busy[: len(waits)]:  # they have nothing for the device now, and earn no credit meanwhile
                    one.used = queue.used
                return queue, None
            waits.append(wait)
        self.filling = busy[0] if len(busy) == 1 else None
        return None, min(waits, default=None)

    def iteration_seconds(self, queue: BatchQueue[Key], now: float) -> float:
        """How long an iteration should take: not long where other queues have work, or had some recently.

        Nor where clients share a search, since a sentence takes many of its steps.
        """
        others = (one for one in self.queues.values() if one is not queue)
        beside = any(now - one.last < RECENTLY or not one.idle for one in others)
        if len(queue.clients) > 1:
            queue.shared = now
        if queue.work is not None and not queue.work.waits_for_more and now - queue.shared < RECENTLY:
            return _SHORT_SHARED_STEP if beside else _SHARED_STEP
        return SHORT_ITERATION if beside else _LONG_ITERATION

    def note(self, queue: BatchQueue[Key], *, tokens: int, begin: float, seconds: float) -> None:
        """An iteration of a queue began then, took so long, and answered so many tokens."""
        self._done = 0.95 * self._done + tokens
        self._spent = 0.95 * self._spent + seconds
        queue.before, queue.latest = queue.used, seconds
        queue.used += seconds / queue.share
        queue.last = begin + seconds

    def wait(self, queue: BatchQueue[Key]) -> float:
        """For how long the next batch of a queue may wait for more, or its work for what is computed elsewhere."""
        work = queue.work
        if work is None or queue.sliced is not None:
            return 0.0
        if queue.running and work.blocked_for:
            return 0.0 if queue.changed else work.blocked_for
        if not queue.waiting or self.closing or not work.waits_for_more or queue.running:
            return 0.0
        if queue.waiting_tokens.total() >= work.room(SHORT_ITERATION):
            return 0.0
        return queue.waiting.first().since + self._delay - time.monotonic()


def _share_out(busy: Sequence[BatchQueue[Any]]) -> None:
    """Compute the share of the device that each busy queue has now.

    A larger one than before counts for the latest iteration, too, since a client that arrives would otherwise wait as
    long as the clients for which the share was small; ``used`` is at least the minimum of all.
    """
    queues_of: dict[str, collections.Counter[str]] = {name: collections.Counter() for name in PRIORITY_WEIGHTS}
    for queue in busy:
        queues_of[queue.priority].update(queue.clients.keys())
    weights = [min(1.0, sum(1 / queues_of[queue.priority][client] for client in queue.clients)) for queue in busy]
    totals = dict.fromkeys(PRIORITY_WEIGHTS, 0.0)
    for queue, weight in zip(busy, weights, strict=True):
        totals[queue.priority] += weight
    minimum = min((queue.used for queue in busy), default=0.0)
    for queue, weight in zip(busy, weights, strict=True):
        share = PRIORITY_WEIGHTS[queue.priority] * weight / totals[queue.priority]
        if share > queue.share:
            queue.used = min(queue.used, max(minimum, queue.before + queue.latest / share))
        queue.share = share
