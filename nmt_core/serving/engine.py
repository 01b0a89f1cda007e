"""One thread per device does the work of all callers; free of gRPC and of torch.

    submit     a job (items of one key) waits in the lane of its priority; what waits is bounded
    admit      items of waiting jobs go into the ``Work`` of their key, as many as have room
    turn       the lane that has had least of the device's time so far does one batch or one step
    deliver    a job whose items are all answered is handed back to the event loop

Lanes share the device by time: when all have work, interactive jobs get eight parts of it, long
searches two and bulk jobs one, and when some are idle the others get all. So none starves, and an
interactive job waits for at most one short turn of another lane. Keys of a lane take turns, and so do
clients of a key: nobody waits until another client's jobs are done.

A job whose caller has gone leaves the queue at once and the running work before its next turn; a job
whose deadline has passed is never begun. What a failing turn takes with it is tried again item by
item, so that only the item at fault fails. When the thread itself fails, all jobs fail and it begins
anew; after some failures in a short time it stays down, and ``down`` says so.
"""

from __future__ import annotations

import asyncio
import collections
import itertools
import logging
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar

from nmt_core.serving.intake import Intake, Observer
from nmt_core.serving.lanes import RECENTLY, SHARES, Job, Key, Lane, Line, deliver
from nmt_core.serving.refusal import busy, internal, unavailable
from nmt_core.serving.work import Answer, Entry, Work

_Result = TypeVar("_Result")

_SHORT_TURN = 0.02  # seconds, while another lane has work or had some recently
_LONG_TURN = 0.5
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
        self._open_work, self.device, self.capacity, self._delay = open_work, device, capacity, delay
        self._client_capacity = capacity if client_capacity is None else client_capacity
        self._observer = observer
        self._lanes: dict[str, Lane[Key]] = {name: Lane(share) for name, share in SHARES.items()}
        self._calls: collections.deque[Callable[[], None]] = collections.deque()
        self._changed = threading.Condition()
        self._intake = Intake(device, self._changed, observer)
        self._closed = False
        self._done, self._spent = 0.0, 0.0  # tokens answered and seconds used, of late
        self._thread: threading.Thread | None = None
        self._turn_began: float | None = None
        self._filling: Line[Key] | None = None  # whose batch the thread waits to be fuller, having nothing else to do
        self._failures: collections.deque[float] = collections.deque(maxlen=_FAILURES)
        self.down = False

    @property
    def waiting_tokens(self) -> int:
        """How much waits, without what is being done."""
        return sum(lane.waiting_tokens for lane in self._lanes.values())

    @property
    def running_items(self) -> int:
        """Items that are being done."""
        with self._changed:
            return sum(len(line.running) for lane in self._lanes.values() for line in lane.lines.values())

    @property
    def stuck_for(self) -> float:
        """Seconds that the present turn has taken so far."""
        began = self._turn_began
        return 0.0 if began is None else time.monotonic() - began

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
        self._put(key, job, self._lanes[lane])
        try:
            answers = await job.future
        except asyncio.CancelledError:
            self._abandon(key, job, self._lanes[lane])
            raise
        if job.taken == 0:
            raise answers[0]
        return answers

    def forget(self, unwanted: Callable[[Key], bool]) -> None:
        """Let go of the idle works of keys that nobody will use again."""
        with self._changed:
            for lane in self._lanes.values():
                for key in [key for key, line in lane.lines.items() if line.idle and unwanted(key)]:
                    del lane.lines[key]

    async def in_thread(self, function: Callable[[], _Result]) -> _Result:
        """Call ``function`` in the thread that runs the models, and wait for it."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[_Result] = loop.create_future()

        def call() -> None:
            try:
                result = function()
            except BaseException as error:  # belongs to the caller
                loop.call_soon_threadsafe(future.set_exception, error)
            else:
                loop.call_soon_threadsafe(future.set_result, result)

        with self._changed:
            if self.down:
                raise unavailable(f"the device {self.device} has failed", reason="DEVICE_FAILED")
            self._calls.append(call)
            self._wake()
        return await future

    async def close(self, timeout: float = 60.0) -> None:
        """Finish what was accepted, in that time, and accept nothing more."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        end = time.monotonic() + timeout
        while self._thread is not None and self._thread.is_alive() and time.monotonic() < end:
            await asyncio.sleep(0.002)

    # ---- called by the event loop

    def _put(self, key: Key, job: Job, lane: Lane[Key]) -> None:
        cost = sum(job.tokens)
        with self._changed:
            if self._closed:
                raise unavailable("the server is shutting down; ask another one, or try again later", reason="DRAINING")
            if self.down:
                raise unavailable(f"the device {self.device} has failed; ask another server", reason="DEVICE_FAILED")
            self._check_room(lane, job.client, cost)
            busy_lanes = self._busy_lanes()
            if lane not in busy_lanes:  # no credit for time spent idle
                lane.used = max([lane.used, *(other.used for other in busy_lanes)])
            line = lane.lines.get(key)
            if line is None:
                line = lane.lines[key] = Line(key)
            line.waiting.put(job.client, job)
            lane.count(job.client, cost)
            if line is not self._filling or self._pause(line) <= 0:
                self._wake()

    def _check_room(self, lane: Lane[Key], client: str, cost: int) -> None:
        """Raises Refusal for a full queue."""
        waiting, mine = lane.waiting_tokens, lane.of_client[client]
        if not ((waiting and waiting + cost > self.capacity) or (mine and mine + cost > self._client_capacity)):
            return
        seconds = min(max(waiting * self._spent / self._done, 0.2), 30.0) if self._done else 1.0
        what = f"{waiting} tokens wait" if waiting + cost > self.capacity else f"{mine} tokens of this client wait"
        raise busy(f"the queue is full ({what}); try again later", reason="QUEUE_FULL", retry_after=seconds)

    def _busy_lanes(self) -> list[Lane[Key]]:
        return [lane for lane in self._lanes.values() if not lane.idle]

    def _wake(self) -> None:
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name=f"model {self.device}", daemon=True)
            self._thread.start()
        self._changed.notify_all()

    def _abandon(self, key: Key, job: Job, lane: Lane[Key]) -> None:
        """Take a job whose caller has gone out of the queue; the thread takes it out of the running work."""
        with self._changed:
            job.gone = True
            line = lane.lines.get(key)
            if line is not None and line.waiting.remove(job.client, job):
                lane.count(job.client, -job.waiting_tokens)
                self._note_cancelled(len(job.items) - job.taken)

    # ---- called by the thread

    def _run(self) -> None:
        """The thread's work. A mistake in it must not leave callers waiting for ever."""
        while True:
            try:
                self._loop()
                return
            except BaseException:
                _log.exception("the thread of %s failed", self.device)
                self._begin_anew()
            if self.down:
                while self._calls:
                    self._calls.popleft()()
                return

    def _begin_anew(self) -> None:
        now = time.monotonic()
        with self._changed:
            self._failures.append(now)
            self.down = len(self._failures) == _FAILURES and now - self._failures[0] < _WITHIN
            jobs = {
                id(job): job for lane in self._lanes.values() for line in lane.lines.values() for job in line.jobs()
            }
            self._lanes = {name: Lane(share) for name, share in SHARES.items()}
            self._turn_began = None
        failed = [job for job in jobs.values() if job.missing]
        for job in failed:
            job.fail(internal())
        deliver(failed)

    def _loop(self) -> None:
        while True:
            self._turn_began = None
            with self._changed:
                chosen = None
                while not self._calls and chosen is None:
                    chosen, pause = self._choose()
                    if chosen is None:
                        if self._closed and pause is None:
                            return
                        self._changed.wait(pause)
            self._turn_began = time.monotonic()
            while self._calls:
                self._calls.popleft()()
            if chosen is not None:
                self._turn(*chosen)

    def _choose(self) -> tuple[tuple[Lane[Key], Line[Key]] | None, float | None]:
        """The lane and line whose turn it is, or None and how long to wait for a fuller batch."""
        pauses = []
        self._filling, paused = None, None
        for lane in sorted(self._busy_lanes(), key=lambda lane: lane.used):
            for line in list(lane.lines.values()):
                if line.idle:
                    continue
                pause = self._pause(line)
                if pause <= 0:
                    return (lane, line), None
                pauses.append(pause)
                paused = line
        if len(pauses) == 1:
            self._filling = paused
        return None, min(pauses, default=None)

    def _pause(self, line: Line[Key]) -> float:
        """For how long the next batch of a line may wait for more, or its work for what is done elsewhere."""
        if line.running and line.work is not None and line.work.waits and not _is_wanted(line, line.work):
            return line.work.waits
        if not line.waiting or self._closed or line.work is None or not line.work.patient or line.running:
            return 0.0
        room = line.work.room(_SHORT_TURN)
        waiting = itertools.accumulate(job.waiting_tokens for job in line.waiting)
        if any(tokens >= room for tokens in waiting):  # looks no further than what fills a batch
            return 0.0
        return line.waiting.first().since + self._delay - time.monotonic()

    def _turn(self, lane: Lane[Key], line: Line[Key]) -> None:
        begin = time.monotonic()
        try:
            if line.work is None:
                line.work = self._open_work(line.key)
            self._let_go(line, line.work)
            room = self._admit(lane, line, line.work, begin)
            tokens = line.work.tokens
            answers = line.work.turn()
        except Exception as error:
            answers = self._recover(lane, line, error)
            room = tokens = 0
        seconds = time.monotonic() - begin
        with self._changed:
            for answer in answers:
                line.running.pop(id(answer.entry), None)
            lane.used, lane.last = lane.used + seconds / lane.share, begin + seconds
            if lane.lines.get(line.key) is line:
                lane.lines.move_to_end(line.key)  # behind those that came meanwhile
                if line.idle and len(lane.lines) > 32:  # clients choose options: keep the works of the latest only
                    del lane.lines[line.key]
        self._done = 0.95 * self._done + sum(answer.entry.tokens for answer in answers)
        self._spent = 0.95 * self._spent + seconds
        self._deliver(answers)
        if tokens and line.work is not None and self._observer is not None:
            self._observer.turned(self.device, line.work.kind, tokens=tokens, room=room, seconds=seconds)

    def _let_go(self, line: Line[Key], work: Work) -> None:
        """Free what callers who have gone have in the running work."""
        gone = [entry for entry in line.running.values() if entry.owner.gone]
        if gone:
            work.cancel(gone)
            with self._changed:
                for entry in gone:
                    del line.running[id(entry)]
            self._note_cancelled(len(gone))

    def _admit(self, lane: Lane[Key], line: Line[Key], work: Work, now: float) -> int:
        """Move waiting items into the work; the room there was for all that is in it now."""
        while line.suspects and line.suspects[0].owner.gone:
            line.suspects.popleft()
        if line.suspects:
            entries = [] if line.running else [line.suspects.popleft()]
            line.running |= {id(entry): entry for entry in entries}
            room = sum(entry.tokens for entry in entries)
        else:
            others = [other for other in self._lanes.values() if other is not lane]
            hurry = any(now - other.last < RECENTLY or other in self._busy_lanes() for other in others)
            room = work.room(_SHORT_TURN if hurry else _LONG_TURN)
            entries = self._intake.take(lane, line, room, now)
        before = work.tokens
        if entries:
            work.admit(entries)
        return before + room

    def _recover(self, lane: Lane[Key], line: Line[Key], error: Exception) -> list[Answer]:
        """After a failed turn: begin anew, with what was running one by one; what fails alone has failed."""
        with self._changed:
            running, line.running, line.work = list(line.running.values()), {}, None
            alone = len(running) == 1
            if not running and line.waiting:  # the work could not even be opened
                job = line.waiting.first()
                line.waiting.remove(job.client, job)
                lane.count(job.client, -job.waiting_tokens)
                running = [Entry(job, index, None, 0) for index in range(job.taken, len(job.items))]
                job.taken, job.waiting_tokens, alone = len(job.items), 0, True
        if alone:
            return [Answer(entry, error) for entry in running]
        line.suspects.extend(running)
        return []

    def _deliver(self, answers: Sequence[Answer]) -> None:
        for entry, value in answers:
            entry.owner.answer(entry.place, value)
        deliver({id(entry.owner): entry.owner for entry, _ in answers if not entry.owner.missing}.values())

    def _note_cancelled(self, items: int) -> None:
        if self._observer is not None and items:
            self._observer.cancelled(self.device, items)


def _is_wanted(line: Line[Any], work: Work) -> bool:
    """Whether something can enter or leave the work of a line."""
    return bool(line.waiting and work.room(_SHORT_TURN) > 0) or any(one.owner.gone for one in line.running.values())
