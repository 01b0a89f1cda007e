"""What waits for a device, and which batch queue uses it next: start-time fair queueing (Goyal, Vin and Cheng 1996).

A batch queue has the jobs of one key in one priority class: they are computed together. Each class has its share of a
busy device (``PRIORITY_WEIGHTS``), and the queues of a class share that, so that the queues that one client alone uses
have together as much as the queue of another client. Idle time earns no credit. Inside a queue, clients take turns.
"""

from __future__ import annotations

import collections
import math
import time
from collections.abc import Callable, Hashable, Iterable, Iterator
from typing import Generic, TypeVar

from nmt_core.serving.engine.jobs import Answer, Entry, Job, RoundRobin
from nmt_core.serving.engine.slices import Sliced
from nmt_core.serving.engine.work import Work
from nmt_core.serving.errors import busy

PRIORITY_WEIGHTS = {"interactive": 8.0, "long": 2.0, "bulk": 1.0}
"""The priority classes, and the weight of each on a busy device."""

SHORT_ITERATION = 0.02
"""Seconds of an iteration while other queues have work, or had some recently."""

RECENTLY = 2.0  # seconds
_LONG_ITERATION = 0.5
_SHARED_STEP, _SHORT_SHARED_STEP = 0.02, 0.01  # of a search that clients share, alone and next to other queues
_KEPT = 32  # queues, the idle ones included

Key = TypeVar("Key", bound=Hashable)
"""Names work: that of equal keys is computed together."""


class BatchQueue(Generic[Key]):
    """The jobs of one key in one priority class, and the work to which they are admitted.

    ``used`` is the queue's virtual time: its seconds of the device, each divided by the share it had.
    ``sliced`` is an iteration that has begun and not ended.
    """

    def __init__(self, key: Key, priority: str) -> None:
        self.key, self.priority = key, priority
        self.work: Work | None = None
        self.sliced: Sliced[list[Answer]] | None = None
        self.waiting: RoundRobin[Job] = RoundRobin()
        self.waiting_tokens: collections.Counter[str] = collections.Counter()  # of each client
        self.running: dict[int, Entry] = {}
        self.suspects: collections.deque[Entry] = collections.deque()  # run one by one, after a failure
        self.clients: collections.Counter[str] = collections.Counter()  # items that wait or run, of each client
        self.used, self.share = 0.0, 1.0
        self.last = self.shared = -math.inf  # when the latest iteration ended, and when several clients had items
        self.before, self.latest = 0.0, 0.0  # ``used`` before the latest iteration, and its seconds

    @property
    def idle(self) -> bool:
        """Nothing to do."""
        return not (self.waiting or self.running or self.suspects)

    @property
    def newcomers(self) -> list[str]:
        """Clients that wait and have nothing running, in the order of their turns."""
        running = {entry.job.client for entry in self.running.values()}
        return [client for client in self.waiting.clients if client not in running]

    def jobs(self) -> Iterator[Job]:
        """All jobs; one with several items under way comes several times."""
        yield from self.waiting
        yield from (entry.job for entry in (*self.running.values(), *self.suspects))

    def put(self, job: Job) -> None:
        """Let a job wait."""
        self.waiting.put(job.client, job)
        self.waiting_tokens[job.client] += job.waiting_tokens
        self.clients[job.client] += len(job.items)

    def take(self, job: Job, *, most: int, room: int) -> list[Entry]:
        """The next items of a waiting job, which run from now on: one at least, as far as its client's turn goes."""
        before = job.waiting_tokens
        entries = job.take(most=most, room=room, quantum=self.waiting.left)
        tokens = before - job.waiting_tokens
        self.waiting_tokens[job.client] -= tokens
        self.running.update(zip(map(id, entries), entries, strict=True))
        if self.waiting.first() is job:
            self.waiting.use(tokens)
        if job.taken == len(job.items):
            self.waiting.remove(job.client, job)
        return entries

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

    def change_share(self, share: float, *, minimum: float) -> None:
        """Its share of now. A larger one counts for the latest iteration, too; ``used`` is ``minimum`` at least.

        Otherwise a client that arrives would wait as long as the clients for which the share was small.
        """
        if share > self.share:
            self.used = min(self.used, max(minimum, self.before + self.latest / share))
        self.share = share


class Queues(Generic[Key]):
    """The batch queues of one engine. Every method is called with the engine's lock held.

    ``capacity`` bounds the tokens that wait in each priority class, ``client_capacity`` those of one client there. A
    batch that is not full waits ``delay`` seconds for more, but not while the engine is ``closing``.
    """

    def __init__(self, *, capacity: int, client_capacity: int | None, delay: float) -> None:
        self._capacity, self._delay = capacity, delay
        self._client_capacity = capacity if client_capacity is None else client_capacity
        self.closing = False
        self.queues: dict[tuple[Key, str], BatchQueue[Key]] = {}
        self._filling: BatchQueue[Key] | None = None  # the thread waits for a fuller batch of it, and for nothing else
        self._unwanted: Callable[[Key], bool] = lambda key: False
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
        """Let a job wait. Raises RpcError for a full queue; a second job is always accepted."""
        if job.parent is None:
            self._check_capacity(priority, job)
        queue = self.queues.get((key, priority))
        if queue is None:
            queue = self.queues[key, priority] = BatchQueue(key, priority)
        if queue.idle:
            queue.used = max(queue.used, self._virtual_time())
        queue.put(job)
        return queue

    def _virtual_time(self) -> float:
        """Where a queue starts that becomes busy: at the minimum of the busy queues, or where the latest ones ended."""
        busy = [queue.used for queue in self._busy()]
        return min(busy) if busy else max((queue.used for queue in self.queues.values()), default=0.0)

    def _check_capacity(self, priority: str, job: Job) -> None:
        of_class = [queue.waiting_tokens for queue in self.queues.values() if queue.priority == priority]
        waiting, mine = sum(one.total() for one in of_class), sum(one[job.client] for one in of_class)
        cost = job.waiting_tokens
        if not ((waiting and waiting + cost > self._capacity) or (mine and mine + cost > self._client_capacity)):
            return
        seconds = min(max(waiting * self._spent / self._done, 0.2), 30.0) if self._done else 1.0
        what = f"{waiting} tokens wait" if waiting + cost > self._capacity else f"{mine} tokens of this client wait"
        raise busy(f"the queue is full ({what}); try again later", reason="QUEUE_FULL", retry_after=seconds)

    def remove(self, queue: BatchQueue[Key], job: Job) -> int:
        """Take a job out of its queue; how many of its items waited there."""
        dropped = queue.remove(job)
        self._forget_idle(queue)
        return dropped

    def clear(self) -> list[BatchQueue[Key]]:
        """Forget everything; the queues that there were."""
        queues, self.queues = list(self.queues.values()), {}
        return queues

    def forget(self, unwanted: Callable[[Key], bool]) -> None:
        """Let go of the works of keys that nobody will use again, each as soon as it is idle."""
        self._unwanted = unwanted
        for queue in list(self.queues.values()):
            self._forget_idle(queue)

    def _forget_idle(self, queue: BatchQueue[Key]) -> None:
        """Forget a queue that is idle and unwanted, and of too many idle ones the one that was used longest ago."""
        forgotten = [queue] if queue.idle and self._unwanted(queue.key) else []
        if len(self.queues) > _KEPT:
            idle = [one for one in self.queues.values() if one.idle]
            forgotten += sorted(idle, key=lambda one: one.last)[:1]
        for one in forgotten:
            self.queues.pop((one.key, one.priority), None)

    def choose(self) -> tuple[BatchQueue[Key] | None, float | None]:
        """The queue that uses the device next, or None and how long to wait for a fuller batch."""
        self._filling = None
        self._share_out()
        waits: list[float] = []
        passed: list[BatchQueue[Key]] = []
        for queue in sorted(self._busy(), key=lambda one: (one.used, one.last)):
            wait = self._wait(queue)
            if wait <= 0:
                for one in passed:  # they have nothing for the device now, and earn no credit meanwhile
                    one.used = queue.used
                return queue, None
            waits.append(wait)
            passed.append(queue)
        self._filling = passed[0] if len(passed) == 1 else None
        return None, min(waits, default=None)

    def is_ready(self, queue: BatchQueue[Key]) -> bool:
        """Whether the thread should look at a queue now; it need not while the queue's batch is filling."""
        return queue is not self._filling or self._wait(queue) <= 0

    def _busy(self) -> Iterable[BatchQueue[Key]]:
        return (queue for queue in self.queues.values() if not queue.idle)

    def _share_out(self) -> None:
        """Compute every queue's share of the device."""
        queues_of = {priority: collections.Counter[str]() for priority in PRIORITY_WEIGHTS}
        for queue in self._busy():
            queues_of[queue.priority].update(queue.clients.keys())
        weights = {
            queue: min(1.0, sum(1 / queues_of[queue.priority][client] for client in queue.clients))
            for queue in self._busy()
        }
        totals = dict.fromkeys(PRIORITY_WEIGHTS, 0.0)
        for queue, weight in weights.items():
            totals[queue.priority] += weight
        minimum = min((queue.used for queue in weights), default=0.0)
        for queue, weight in weights.items():
            share = PRIORITY_WEIGHTS[queue.priority] * weight / totals[queue.priority]
            queue.change_share(share, minimum=minimum)

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

    def used(self, queue: BatchQueue[Key], *, tokens: int, begin: float, seconds: float) -> None:
        """An iteration of a queue began then, took so long, and answered so many tokens."""
        self._done = 0.95 * self._done + tokens
        self._spent = 0.95 * self._spent + seconds
        queue.before, queue.latest = queue.used, seconds
        queue.used += seconds / queue.share
        queue.last = begin + seconds
        self._forget_idle(queue)

    def _wait(self, queue: BatchQueue[Key]) -> float:
        """For how long the next batch of a queue may wait for more, or its work for what is computed elsewhere."""
        work = queue.work
        if work is None or queue.sliced is not None:
            return 0.0
        if queue.running and work.blocked_for:
            seconds = self.iteration_seconds(queue, time.monotonic())
            return 0.0 if _has_changes(queue, work, seconds) else work.blocked_for
        if not queue.waiting or self.closing or not work.waits_for_more or queue.running:
            return 0.0
        if queue.waiting_tokens.total() >= work.room(SHORT_ITERATION):
            return 0.0
        return queue.waiting.first().since + self._delay - time.monotonic()


def _has_changes(queue: BatchQueue[Key], work: Work, seconds: float) -> bool:
    """Whether something can enter the work of a queue, with iterations of so many seconds, or has to leave it."""
    if any(entry.job.first.cancelled for entry in queue.running.values()):
        return True
    if not queue.waiting:
        return False
    newcomers = queue.newcomers
    enters = bool(newcomers) and queue.waiting.first(newcomers[0]).cost <= work.overcommit
    return enters or queue.waiting.first().cost <= work.room(seconds)
