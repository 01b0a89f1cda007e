"""One thread per device does the work of all callers; free of gRPC and of torch.

    submit     the parts of a request wait as jobs in the queues of their key and priority class; what waits is bounded
    choose     the queue that has used least of the device for its share is next
    iterate    its waiting items enter the work, which does a batch, a step, or a slice of a long one
    deliver    a job whose items are all answered is handed back to the event loop

``queue`` decides which queue is next, ``iteration`` runs it. When the thread itself fails, all jobs fail and it starts
again; after some failures in a short time it stays down, and ``down`` says so.
"""

from __future__ import annotations

import asyncio
import collections
import functools
import logging
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar

from nmt_core.serving.engine.iteration import Iterations, Observer, give_up
from nmt_core.serving.engine.jobs import Job, Part, deliver
from nmt_core.serving.engine.queue import BatchQueue, Key, Queues
from nmt_core.serving.engine.work import Work
from nmt_core.serving.errors import draining, internal, unavailable
from nmt_core.serving.off_loop import call_for

_Result = TypeVar("_Result")

_FAILURES, _WITHIN = 5, 60.0  # of the thread, in seconds, until it stays down
_log = logging.getLogger(__name__)


class Engine(Generic[Key]):
    """The thread of one device. ``open_work(key)`` makes the work of a key, in the thread.

    ``capacity`` bounds the tokens that wait in each priority class, so that bulk jobs never fill the queue for
    interactive ones; a single job may be larger, so that nothing is rejected for ever. A batch that is not full waits
    ``delay`` seconds for more. ``client_capacity`` bounds what one client has waiting in a class.
    """

    def __init__(
        self,
        open_work: Callable[[Key], Work],
        *,
        device: str = "cpu",
        capacity: int = 2_000_000,
        client_capacity: int | None = None,
        delay: float = 0.002,
        observer: Observer | None = None,
    ) -> None:
        self.device, self._observer = device, observer
        self._changed = threading.Condition()
        self._queues = Queues[Key](capacity=capacity, client_capacity=client_capacity, delay=delay)
        self._iterations = Iterations(open_work, device, self._queues, self._changed, observer)
        self._calls: collections.deque[Callable[[], None]] = collections.deque()
        self._thread: threading.Thread | None = None
        self._iteration_began: float | None = None
        self._failures: collections.deque[float] = collections.deque(maxlen=_FAILURES)
        self.down = False

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
        self, key: Key, parts: Sequence[Part], *, client: str = "", deadline: float | None = None
    ) -> list[list[Any]]:
        """The answers to the items of each part, an exception standing for an item that failed.

        ``deadline`` is in seconds of ``time.monotonic``. Raises RpcError when the queue is full, the engine is closed,
        or the deadline passed before the work began.
        """
        loop, jobs = asyncio.get_running_loop(), list[tuple[BatchQueue[Key], Job]]()
        try:
            with self._changed:
                self._check_open()
                for part in parts:
                    job = Job(client, part.items, part.tokens, deadline, loop.create_future())
                    jobs.append((self._queues.put(key, part.priority, job), job))
                if any(self._queues.is_ready(queue) for queue, _ in jobs):
                    self._wake()
            return await asyncio.gather(*(job.future for _, job in jobs if job.future is not None))
        except BaseException:
            self._abandon(jobs)
            raise

    def forget(self, unwanted: Callable[[Key], bool]) -> None:
        """Let go of the works of keys that nobody will use again, when they are idle."""
        with self._changed:
            self._queues.forget(unwanted)

    async def in_thread(self, function: Callable[[], _Result]) -> _Result:
        """Call ``function`` in the thread that runs the models, and wait for it."""
        future: asyncio.Future[_Result] = asyncio.get_running_loop().create_future()
        with self._changed:
            if self.down:
                raise unavailable(f"the device {self.device} has failed", reason="DEVICE_FAILED")
            self._calls.append(functools.partial(call_for, future, function))
            self._wake()
        return await future

    async def close(self, timeout: float = 60.0) -> None:
        """Finish what was accepted, in that time, and accept nothing more."""
        with self._changed:
            self._queues.closing = True
            self._changed.notify_all()
        end = time.monotonic() + timeout
        while self._thread is not None and self._thread.is_alive() and time.monotonic() < end:
            await asyncio.sleep(0.002)

    def _check_open(self) -> None:
        """Raises RpcError where the engine no longer takes work."""
        if self._queues.closing:
            raise draining()
        if self.down:
            raise unavailable(f"the device {self.device} has failed; ask another server", reason="DEVICE_FAILED")

    def _wake(self) -> None:
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name=f"model {self.device}", daemon=True)
            self._thread.start()
        self._changed.notify_all()

    def _abandon(self, jobs: Sequence[tuple[BatchQueue[Key], Job]]) -> None:
        """Take jobs whose caller has gone out of the queues; the thread takes them out of the running work."""
        with self._changed:
            for _, job in jobs:
                job.cancelled = True
            dropped = sum(self._queues.remove(queue, job) for queue, job in jobs)
            self._changed.notify_all()
        if dropped and self._observer is not None:
            self._observer.cancelled(self.device, dropped)

    # ---- called by the thread

    def _run(self) -> None:
        """The thread's work. A mistake in it must not leave callers waiting for ever."""
        while True:
            try:
                self._iterate()
                return
            except BaseException:
                _log.exception("the thread of %s failed", self.device)
                self._start_again()
            if self.down:
                while self._calls:
                    self._calls.popleft()()
                return

    def _start_again(self) -> None:
        """Fail all jobs; after too many failures the engine is down."""
        now = time.monotonic()
        with self._changed:
            self._failures.append(now)
            self.down = len(self._failures) == _FAILURES and now - self._failures[0] < _WITHIN
            queues = self._queues.clear()
            self._iteration_began = None
        failed = {id(job.first): job.first for queue in queues for job in queue.jobs() if job.first.missing}.values()
        for job in failed:
            job.fail(internal())
        deliver(failed)
        for queue in queues:
            give_up(queue, queue.work, list(queue.running.values()))

    def _iterate(self) -> None:
        """Do what is asked for until the engine is closed."""
        while True:
            self._iteration_began = None
            with self._changed:
                queue = None
                while not self._calls and queue is None:
                    queue, wait = self._queues.choose()
                    if queue is None:
                        if self._queues.closing and wait is None:
                            return
                        self._changed.wait(wait)
            self._iteration_began = time.monotonic()
            while self._calls:
                self._calls.popleft()()
            if queue is not None:
                self._iterations.run(queue)
