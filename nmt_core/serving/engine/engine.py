"""One thread per device does the work of all callers; free of gRPC and of torch.

    submit     the parts of a request wait as jobs in the queues of their key and priority class; what waits is bounded
    choose     the queue that has used least of the device for its share is next
    iterate    its waiting items enter the work, which does a batch, a step, or a slice of a long one
    deliver    a job whose items are all answered is handed back to the event loop

Nobody enters or leaves a work within a slice. An item whose caller has gone leaves before the next iteration; a job
whose deadline has passed is never started. What ran in an iteration that fails runs again in two parts: only the
item at fault fails. When the thread itself fails, all jobs fail and it starts again; after some failures in a short
time it stays down, and ``down`` says so.
"""

from __future__ import annotations

import asyncio
import collections
import contextlib
import functools
import logging
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Generic

from nmt_core.serving.engine.queue import BatchQueue, Job, Key, Queues
from nmt_core.serving.engine.slices import SLICE, Sliced
from nmt_core.serving.engine.work import Entry, Item, Unfinished, Work
from nmt_core.serving.errors import draining, expired, internal, unavailable
from nmt_core.serving.limits import Limits
from nmt_core.serving.telemetry import Metrics

_FAILURES, _WITHIN = 5, 60.0  # of the thread, in seconds, until it stays down
_FAILED_ITERATIONS = 20  # of a queue, one after the other, until what runs is not divided any more
_LONG = 2  # times the seconds that an iteration should take: others do not wait so long for its end
_log = logging.getLogger(__name__)


class Engine(Generic[Key]):
    """The thread of one device. ``open_work(key)`` makes the work of a key, in the thread.

    ``limits.queue`` bounds the tokens that wait in each priority class, so that bulk jobs never fill the queue for
    interactive ones; a single job may be larger, so that nothing is rejected for ever.
    """

    def __init__(
        self,
        open_work: Callable[[Key], Work],
        *,
        device: str = "cpu",
        limits: Limits | None = None,
        metrics: Metrics | None = None,
    ) -> None:
        self.device, self._open_work, self._metrics = device, open_work, metrics or Metrics()
        self._changed = threading.Condition()
        self._queues = Queues[Key](limits or Limits())
        self._iteration_began: float | None = None
        self._failures: collections.deque[float] = collections.deque(maxlen=_FAILURES)
        self.down = False
        self._thread = threading.Thread(target=self._run, name=f"model {device}", daemon=True)
        self._thread.start()

    @property
    def waiting_tokens(self) -> int:
        """How much waits, without what is being computed."""
        with self._changed:
            return self._queues.waiting_tokens

    @property
    def running_items(self) -> int:
        """Items that are being computed."""
        with self._changed:
            return self._queues.running_items

    @property
    def stuck_for(self) -> float:
        """Seconds that the present iteration has taken so far."""
        began = self._iteration_began
        return 0.0 if began is None else time.monotonic() - began

    # ---- called by the event loop

    async def submit(
        self, key: Key, parts: Mapping[str, Sequence[Item]], *, client: str = "", deadline: float | None = None
    ) -> list[list[Any]]:
        """The answers to the items of each priority class, an exception standing for an item that failed.

        ``deadline`` is in seconds of ``time.monotonic``. Raises RpcError when the queue is full, the engine is closed,
        or the deadline passed before the work began.
        """
        loop, jobs, futures = asyncio.get_running_loop(), list[Job](), list[asyncio.Future[list[Any]]]()
        try:
            with self._changed:
                if self._queues.closing:
                    raise draining()
                if self.down:
                    problem = f"the device {self.device} has failed; ask another server"
                    raise unavailable(problem, reason="DEVICE_FAILED")
                for priority, items in parts.items():
                    futures.append(loop.create_future())
                    jobs.append(Job(client, items, deadline, futures[-1]))
                    queue = self._queues.put(key, priority, jobs[-1])
                    if queue is not self._queues.filling or self._queues.wait(queue) <= 0:
                        self._changed.notify_all()
            return await asyncio.gather(*futures)
        except BaseException:
            self._abandon(jobs)
            raise

    def _abandon(self, jobs: Iterable[Job]) -> None:
        """Take jobs whose caller has gone out of the queues; the thread takes them out of the running work."""
        with self._changed:
            dropped = sum(self._queues.cancel(job) for job in jobs if job.queue is not None)
            self._changed.notify_all()
        self._metrics.dropped.labels(self.device).inc(dropped)

    def forget(self, unwanted: Callable[[Key], bool]) -> None:
        """Let go of the works of keys that nobody will use again, when they are idle."""
        with self._changed:
            self._queues.unwanted = unwanted
            self._changed.notify_all()

    async def close(self, timeout: float = 60.0) -> None:
        """Finish what was accepted, in that time, and accept nothing more."""
        with self._changed:
            self._queues.closing = True
            self._changed.notify_all()
        end = time.monotonic() + timeout
        while self._thread.is_alive() and time.monotonic() < end:
            await asyncio.sleep(0.002)

    # ---- called by the thread

    def _run(self) -> None:
        """The thread's work. A mistake in it must not leave callers waiting for ever."""
        while not self.down:
            try:
                self._serve()
                return
            except BaseException:
                _log.exception("the thread of %s failed", self.device)
                self._start_again()

    def _start_again(self) -> None:
        """Fail all jobs; after too many failures the engine is down."""
        now = time.monotonic()
        with self._changed:
            self._failures.append(now)
            self.down = len(self._failures) == _FAILURES and now - self._failures[0] < _WITHIN
            queues = self._queues.clear()
            self._iteration_began = None
        jobs = [job for queue in queues for job in queue.jobs()]
        _fail({id(job.first): job.first for job in jobs if job.first.missing}.values(), internal())
        for queue in queues:
            _give_up(queue)

    def _serve(self) -> None:
        """Do what is asked for until the engine is closed."""
        while True:
            self._iteration_began = None
            with self._changed:
                queue, wait = self._queues.choose()
                while queue is None:
                    if self._queues.closing and wait is None:
                        return
                    self._changed.wait(wait)
                    queue, wait = self._queues.choose()
            self._iterate(queue)

    def _iterate(self, queue: BatchQueue[Key]) -> None:
        """An iteration of a queue, or a slice of it. What its work raises becomes the answers of the items at fault."""
        begin = self._iteration_began = time.monotonic()
        tokens = room = 0
        try:
            work = queue.work = queue.work or self._open_work(queue.key)
            if gone := [entry for entry in queue.running.values() if entry.job.first.cancelled]:
                self._drop(queue, work, gone)
            with self._changed:
                queue.changed = False
                seconds = self._queues.iteration_seconds(queue, begin)
            entering: list[Entry] = []
            if queue.sliced is None:
                room = queue.running_tokens + work.room(seconds)
                entering = self._admit(queue, work, seconds, begin)
            tokens = queue.running_tokens
            found = _advance(queue, work, entering, seconds) if queue.running else []
            answered = sum(queue.running[key].item.tokens for key, _ in found)
            queue.failures = 0 if found else queue.failures
        except Exception as error:
            found, tokens, answered = self._recover(queue, error), 0, 0
        seconds = time.monotonic() - begin
        with self._changed:
            finished = self._settle(queue, found)
            self._queues.note(queue, tokens=answered, begin=begin, seconds=seconds)
        _deliver(finished)
        if tokens:
            self._metrics.iterated(self.device, work.kind, tokens=tokens, room=room, seconds=seconds)

    def _drop(self, queue: BatchQueue[Key], work: Work, gone: Sequence[Entry]) -> None:
        """Free what callers that have gone have in the work; within an iteration only if all of it is theirs."""
        if queue.sliced is not None:
            if len(gone) < len(queue.running):
                return
            queue.sliced.give_up(wait=True)
            queue.sliced = None
        work.cancel([entry.key for entry in gone])
        with self._changed:
            for entry in gone:
                queue.leave(queue.running.pop(entry.key).job.client, 1)
        self._metrics.dropped.labels(self.device).inc(len(gone))

    def _admit(self, queue: BatchQueue[Key], work: Work, seconds: float, now: float) -> list[Entry]:
        """Move waiting items into the work; after a failure some of those that ran, by themselves."""
        with self._changed:
            if queue.retries:
                return [] if queue.running else queue.retry()
            entries, late = queue.admit(work, seconds, now)
        if late:
            _fail(late, expired())
            self._metrics.late.labels(self.device).inc(len(late))
        for entry in entries:
            if entry.number == 0 and entry.job.parent is None:
                self._metrics.queue_seconds.labels(self.device).observe(now - entry.job.since)
        return entries

    def _settle(self, queue: BatchQueue[Key], found: Iterable[tuple[int, Any]]) -> list[Job]:
        """Let answers leave the queue; callers' jobs that have all answers now. First results become second jobs."""
        finished: list[Job] = []
        for key, value in found:
            entry = queue.running.pop(key)
            queue.leave(entry.job.client, 1)
            if not isinstance(value, Unfinished):
                finished += entry.job.answer(entry.number, value)
            elif not entry.job.first.cancelled:
                assert queue.work is not None
                second = Job(entry.job.client, [value], parent=entry)
                self._queues.put(queue.work.second, queue.priority, second)  # type: ignore[arg-type]  # a key
        return finished

    def _recover(self, queue: BatchQueue[Key], error: Exception) -> list[tuple[int, Any]]:
        """After a failure: start again, with what was running in two parts; what fails alone has failed."""
        _give_up(queue)
        with self._changed:
            failed = list(queue.running.values())
            if not failed and queue.waiting:  # the work could not even be opened
                job = queue.waiting.first()
                while job.taken < len(job.items):
                    failed += queue.take(job, job.waiting_tokens, most=len(job.items))
                queue.failures = _FAILED_ITERATIONS
            queue.failures += 1
            if len(failed) <= 1 or queue.failures > _FAILED_ITERATIONS:
                return [(entry.key, error) for entry in failed]
            half = len(failed) // 2
            queue.retries.extendleft([failed[half:], failed[:half]])
            queue.running = {}
        return []


def _advance(queue: BatchQueue[Any], work: Work, entering: Sequence[Entry], seconds: float) -> list[tuple[int, Any]]:
    """The answers of an iteration that should take so long, or none as long as slices of it are left."""
    if queue.sliced is None:
        if work.expected(queue.running.values()) <= _LONG * seconds:
            return work.iterate(entering)
        queue.sliced = Sliced(functools.partial(work.iterate, entering))
    if not queue.sliced.advance(SLICE):
        return []
    sliced, queue.sliced = queue.sliced, None
    return sliced.result()


def _give_up(queue: BatchQueue[Any]) -> None:
    """Let go of a work that has failed, and of what it has begun in threads of its own."""
    if queue.sliced is not None:
        queue.sliced.give_up(wait=True)
    work, queue.work, queue.sliced = queue.work, None, None
    if work is not None:
        with contextlib.suppress(Exception):  # it may be broken
            work.cancel(list(queue.running))


def _fail(jobs: Iterable[Job], error: Exception) -> None:
    """The same error for all items of jobs without an answer."""
    for job in jobs:
        job.missing = 0
        job.answers = [error if answer is None else answer for answer in job.answers]
    _deliver(jobs)


def _deliver(jobs: Iterable[Job]) -> None:
    """Hand answers to the callers. Called by the device's thread; the event loop, which all share, is woken once."""
    waited_for = [(job, job.future) for job in jobs if job.future is not None and not job.cancelled]
    if waited_for:
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits any more
            waited_for[0][1].get_loop().call_soon_threadsafe(_arrive, waited_for)


def _arrive(jobs: Iterable[tuple[Job, asyncio.Future[list[Any]]]]) -> None:
    """An error that came before any of a job was started is an error of the whole job."""
    for job, future in jobs:
        if future.done():
            continue
        if job.taken:
            future.set_result(job.answers)
        else:
            future.set_exception(job.answers[0])
