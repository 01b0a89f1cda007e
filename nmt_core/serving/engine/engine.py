"""One thread per device does the work of all callers; free of gRPC and of torch.

    submit     a job (items of one key) waits in the lane of its priority; what waits is bounded
    admit      items of waiting jobs go into the ``Work`` of their key, as many as have room
    turn       the lane that has had least of the device's time so far does one batch or one step
    deliver    a job whose items are all answered is handed back to the event loop

``scheduler`` says whose turn it is, ``turns`` takes it. When the thread itself fails, all jobs fail and it
begins anew; after some failures in a short time it stays down, and ``down`` says so.
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

from nmt_core.serving.background import call_for
from nmt_core.serving.engine.queue import Scheduler
from nmt_core.serving.engine.work import Work
from nmt_core.serving.errors import draining, internal, unavailable
from nmt_core.serving.lanes import Job, Key, deliver
from nmt_core.serving.observer import Observer
from nmt_core.serving.turns import Turns, give_up

_Result = TypeVar("_Result")

_FAILURES, _WITHIN = 5, 60.0  # of the thread, in seconds, until it stays down
_log = logging.getLogger(__name__)


class Engine(Generic[Key]):
    """The thread of one device. ``open_work(key)`` makes the work of a key, in the thread.

    ``capacity`` bounds the tokens that wait in each lane, so that bulk jobs never fill the queue for
    interactive ones; a single job may be larger, so that nothing is refused for ever. A batch that is
    not full waits ``delay`` seconds for more. ``client_capacity`` bounds what one client has waiting in a lane.
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
        self._scheduler = Scheduler[Key](capacity=capacity, client_capacity=client_capacity, delay=delay)
        self._turns = Turns(open_work, device, self._scheduler, self._changed, observer)
        self._calls: collections.deque[Callable[[], None]] = collections.deque()
        self._thread: threading.Thread | None = None
        self._turn_began: float | None = None
        self._failures: collections.deque[float] = collections.deque(maxlen=_FAILURES)
        self.down = False

    @property
    def waiting_tokens(self) -> int:
        """How much waits, without what is being done."""
        return self._scheduler.waiting_tokens

    @property
    def running_items(self) -> int:
        """Items that are being done."""
        with self._changed:
            return self._scheduler.running_items

    @property
    def stuck_for(self) -> float:
        """Seconds that the present turn has taken so far."""
        began = self._turn_began
        return 0.0 if began is None else time.monotonic() - began

    # ---- called by the event loop

    async def submit(
        self,
        key: Key,
        items: Sequence[Any],
        *,
        tokens: Sequence[int],
        lane: str = "interactive",
        client: str = "",
        deadline: float | None = None,
    ) -> list[Any]:
        """The answers to ``items``, an exception standing for an item that failed.

        ``deadline`` is in seconds of ``time.monotonic``. Raises Refusal when the queue is full, the
        engine is closed, or the deadline passed before the work began.
        """
        if not items:
            return []
        job = Job(client, items, tokens, deadline, asyncio.get_running_loop().create_future())
        with self._changed:
            self._check_works()
            if self._scheduler.put(key, job, lane):
                self._wake()
        try:
            answers = await job.future
        except asyncio.CancelledError:
            self._abandon(key, job, lane)
            raise
        if job.taken == 0:
            raise answers[0]
        return answers

    def forget(self, unwanted: Callable[[Key], bool]) -> None:
        """Let go of the works of keys that nobody will use again, when they are idle."""
        with self._changed:
            self._scheduler.forget(unwanted)

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
            self._scheduler.closing = True
            self._changed.notify_all()
        end = time.monotonic() + timeout
        while self._thread is not None and self._thread.is_alive() and time.monotonic() < end:
            await asyncio.sleep(0.002)

    def _check_works(self) -> None:
        """Raises Refusal where the engine takes nothing any more."""
        if self._scheduler.closing:
            raise draining()
        if self.down:
            raise unavailable(f"the device {self.device} has failed; ask another server", reason="DEVICE_FAILED")

    def _wake(self) -> None:
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name=f"model {self.device}", daemon=True)
            self._thread.start()
        self._changed.notify_all()

    def _abandon(self, key: Key, job: Job, lane: str) -> None:
        """Take a job whose caller has gone out of the queue; the thread takes it out of the running work."""
        with self._changed:
            job.gone = True
            dropped = self._scheduler.remove(key, job, lane)
        if dropped and self._observer is not None:
            self._observer.cancelled(self.device, dropped)

    # ---- called by the thread

    def _run(self) -> None:
        """The thread's work. A mistake in it must not leave callers waiting for ever."""
        while True:
            try:
                self._take_turns()
                return
            except BaseException:
                _log.exception("the thread of %s failed", self.device)
                self._begin_anew()
            if self.down:
                while self._calls:
                    self._calls.popleft()()
                return

    def _begin_anew(self) -> None:
        """Fail all jobs; after too many failures the engine is down."""
        now = time.monotonic()
        with self._changed:
            self._failures.append(now)
            self.down = len(self._failures) == _FAILURES and now - self._failures[0] < _WITHIN
            lines = self._scheduler.clear()
            self._turn_began = None
        failed = {id(job): job for line in lines for job in line.jobs() if job.missing}.values()
        for job in failed:
            job.fail(internal())
        deliver(failed)
        for line in lines:
            give_up(line.work, list(line.running.values()))

    def _take_turns(self) -> None:
        """Do what is asked for until the engine is closed."""
        while True:
            self._turn_began = None
            with self._changed:
                chosen = None
                while not self._calls and chosen is None:
                    chosen, pause = self._scheduler.choose()
                    if chosen is None:
                        if self._scheduler.closing and pause is None:
                            return
                        self._changed.wait(pause)
            self._turn_began = time.monotonic()
            while self._calls:
                self._calls.popleft()()
            if chosen is not None:
                self._turns.take(*chosen)
