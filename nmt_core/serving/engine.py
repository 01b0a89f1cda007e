"""One thread per device does the work of all callers; free of gRPC and of torch.

    submit     a job (items of one key) waits in the lane of its priority; what waits is bounded
    admit      items of waiting jobs go into the ``Work`` of their key, as many as have room
    turn       the lane that has had least of the device's time so far does one batch or one step
    deliver    a job whose items are all answered is handed back to the event loop

Two lanes share the device by time: when both have work, interactive jobs get ``_SHARES`` of it to
the bulk jobs' rest, and when one is idle the other gets all. So neither starves, and an interactive
job waits for at most one short turn of a bulk job. Keys of a lane take turns.

A job whose caller has gone leaves the queue at once and the running work before its next turn; a job
whose deadline has passed is never begun. What a failing turn takes with it is tried again item by
item, so that only the item at fault fails.
"""

from __future__ import annotations

import asyncio
import collections
import itertools
import threading
import time
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

from nmt_core.serving.refusal import busy, expired, unavailable
from nmt_core.serving.work import Answer, Entry, Work

_Result = TypeVar("_Result")

_SHARES = {"interactive": 8.0, "bulk": 1.0}
_SHORT_TURN = 0.02  # seconds, while the other lane has work or had some a moment ago
_LONG_TURN = 1.0
_MOMENT = 2.0


class Observer(Protocol):
    """Is told what an engine does, by the engine's thread."""

    def began(self, device: str, waited: float) -> None:
        """A job left the queue after so many seconds."""
        ...

    def turned(self, device: str, kind: str, *, tokens: int, room: int, seconds: float) -> None:
        """A turn was done with ``tokens`` of the ``room`` there was."""
        ...

    def cancelled(self, device: str, items: int) -> None:
        """Items of callers who had gone were dropped, waiting or running."""
        ...

    def expired(self, device: str) -> None:
        """A job was dropped because its deadline had passed."""
        ...


@dataclass(eq=False)
class _Job:
    """Items of one caller: those before ``taken`` were admitted, ``missing`` have no answer yet."""

    items: Sequence[Any]
    tokens: Sequence[int]
    deadline: float | None
    deliver: Callable[[list[Any]], None]
    since: float
    taken: int = 0
    missing: int = 0
    gone: bool = False
    answers: list[Any] = field(default_factory=list)


class _Line:
    """The jobs of one key in one lane, and the work they are admitted to."""

    def __init__(self, key: Hashable) -> None:
        self.key = key
        self.work: Work | None = None
        self.waiting: collections.deque[_Job] = collections.deque()
        self.running: dict[int, Entry] = {}
        self.suspects: collections.deque[Entry] = collections.deque()

    @property
    def idle(self) -> bool:
        return not (self.waiting or self.running or self.suspects)


class _Lane:
    """The lines of one priority, in the order of their turns, and the device time they have used."""

    def __init__(self, share: float) -> None:
        self.share, self.used, self.last = share, 0.0, -_MOMENT
        self.waiting_tokens = 0
        self.lines: collections.OrderedDict[Hashable, _Line] = collections.OrderedDict()


class Engine:
    """The thread of one device. ``open_work(key)`` makes the work of a key, in the thread.

    ``capacity`` bounds the tokens that wait in each lane, so that bulk jobs never fill the queue for
    interactive ones; a single job may be larger, so that nothing is refused for ever. A batch that is
    not full waits ``delay`` seconds for more.
    """

    def __init__(
        self,
        open_work: Callable[[Hashable], Work],
        *,
        device: str = "cpu",
        capacity: int = 2_000_000,
        delay: float = 0.002,
        observer: Observer | None = None,
    ) -> None:
        self._open_work, self.device, self.capacity, self._delay = open_work, device, capacity, delay
        self._observer = observer
        self._lanes = {name: _Lane(share) for name, share in _SHARES.items()}
        self._calls: collections.deque[Callable[[], None]] = collections.deque()
        self._changed = threading.Condition()
        self._closed = False
        self._done, self._spent = 0.0, 0.0  # tokens answered and seconds used, of late
        self._thread: threading.Thread | None = None

    @property
    def waiting_tokens(self) -> int:
        """How much waits, without what is being done."""
        return sum(lane.waiting_tokens for lane in self._lanes.values())

    @property
    def running_items(self) -> int:
        """Items that are being done."""
        with self._changed:
            return sum(len(line.running) for lane in self._lanes.values() for line in lane.lines.values())

    async def submit(
        self,
        key: Hashable,
        items: Sequence[Any],
        *,
        tokens: Sequence[int],
        lane: str = "interactive",
        deadline: float | None = None,
    ) -> list[Any]:
        """The answers to ``items``, an exception standing for an item that failed.

        ``deadline`` is in seconds of ``time.monotonic``. Raises Refusal when the queue is full, the
        engine is closed, or the deadline passed before the work began.
        """
        loop = asyncio.get_running_loop()
        future: asyncio.Future[list[Any]] = loop.create_future()

        def arrive(answers: list[Any]) -> None:
            if not future.done():
                future.set_result(answers)

        def deliver(answers: list[Any]) -> None:
            loop.call_soon_threadsafe(arrive, answers)

        if not items:
            return []
        job = _Job(items, tokens, deadline, deliver, time.monotonic(), missing=len(items), answers=[None] * len(items))
        self._put(key, job, self._lanes[lane])
        try:
            answers = await future
        except asyncio.CancelledError:
            self._abandon(key, job, self._lanes[lane])
            raise
        if job.taken == 0:
            raise answers[0]
        return answers

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
            self._calls.append(call)
            self._wake()
        return await future

    async def close(self) -> None:
        """Finish what was accepted, and accept nothing more."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        if self._thread is not None:
            await asyncio.to_thread(self._thread.join)

    # ---- called by the event loop

    def _put(self, key: Hashable, job: _Job, lane: _Lane) -> None:
        cost = sum(job.tokens)
        with self._changed:
            if self._closed:
                raise unavailable("the server is shutting down; ask another one, or try again later", reason="DRAINING")
            waiting = lane.waiting_tokens
            if waiting and waiting + cost > self.capacity:
                seconds = min(max(waiting * self._spent / self._done, 0.2), 30.0) if self._done else 1.0
                problem = f"the queue is full ({waiting} tokens wait); try again later"
                raise busy(problem, reason="QUEUE_FULL", retry_after=seconds)
            busy_lanes = self._busy_lanes()
            if lane not in busy_lanes:  # no credit for time spent idle
                lane.used = max([lane.used, *(other.used for other in busy_lanes)])
            lane.lines.setdefault(key, _Line(key)).waiting.append(job)
            lane.waiting_tokens += cost
            self._wake()

    def _busy_lanes(self) -> list[_Lane]:
        return [lane for lane in self._lanes.values() if any(not line.idle for line in lane.lines.values())]

    def _wake(self) -> None:
        if self._thread is None:
            self._thread = threading.Thread(target=self._loop, name=f"model {self.device}", daemon=True)
            self._thread.start()
        self._changed.notify_all()

    def _abandon(self, key: Hashable, job: _Job, lane: _Lane) -> None:
        """Take a job whose caller has gone out of the queue; the thread takes it out of the running work."""
        with self._changed:
            job.gone = True
            line = lane.lines.get(key)
            if line is not None and job in line.waiting:
                line.waiting.remove(job)
                lane.waiting_tokens -= sum(job.tokens[job.taken :])
                self._note_cancelled(len(job.items) - job.taken)

    # ---- called by the thread

    def _loop(self) -> None:
        while True:
            with self._changed:
                chosen = None
                while not self._calls and chosen is None:
                    chosen, pause = self._choose()
                    if chosen is None:
                        if self._closed and pause is None:
                            return
                        self._changed.wait(pause)
            while self._calls:
                self._calls.popleft()()
            if chosen is not None:
                self._turn(*chosen)

    def _choose(self) -> tuple[tuple[_Lane, _Line] | None, float | None]:
        """The lane and line whose turn it is, or None and how long to wait for a fuller batch."""
        pauses = []
        for lane in sorted(self._busy_lanes(), key=lambda lane: lane.used):
            for line in list(lane.lines.values()):
                if line.idle:
                    continue
                pause = self._pause(line)
                if pause <= 0:
                    lane.lines.move_to_end(line.key)
                    return (lane, line), None
                pauses.append(pause)
        return None, min(pauses, default=None)

    def _pause(self, line: _Line) -> float:
        """For how long the next batch of a line may wait for more."""
        if not line.waiting or self._closed or line.work is None or not line.work.patient or line.running:
            return 0.0
        room = line.work.room(_SHORT_TURN)
        waiting = itertools.accumulate(sum(job.tokens[job.taken :]) for job in line.waiting)
        if any(tokens >= room for tokens in waiting):  # looks no further than what fills a batch
            return 0.0
        return line.waiting[0].since + self._delay - time.monotonic()

    def _turn(self, lane: _Lane, line: _Line) -> None:
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
            if line.idle and len(lane.lines) > 32:  # clients choose options: keep the works of the latest only
                del lane.lines[line.key]
        self._done = 0.95 * self._done + sum(answer.entry.tokens for answer in answers)
        self._spent = 0.95 * self._spent + seconds
        if tokens and line.work is not None and self._observer is not None:
            self._observer.turned(self.device, line.work.kind, tokens=tokens, room=room, seconds=seconds)
        self._deliver(answers)

    def _let_go(self, line: _Line, work: Work) -> None:
        """Free what callers who have gone have in the running work."""
        gone = [entry for entry in line.running.values() if entry.owner.gone]
        if gone:
            work.cancel(gone)
            with self._changed:
                for entry in gone:
                    del line.running[id(entry)]
            self._note_cancelled(len(gone))

    def _admit(self, lane: _Lane, line: _Line, work: Work, now: float) -> int:
        """Move waiting items into the work; the room there was for all that is in it now."""
        while line.suspects and line.suspects[0].owner.gone:
            line.suspects.popleft()
        if line.suspects:
            entries = [] if line.running else [line.suspects.popleft()]
            room = sum(entry.tokens for entry in entries)
        else:
            others = [other for other in self._lanes.values() if other is not lane]
            hurry = any(now - other.last < _MOMENT or other in self._busy_lanes() for other in others)
            room = work.room(_SHORT_TURN if hurry else _LONG_TURN)
            entries = self._take(lane, line, room, now)
        with self._changed:
            line.running |= {id(entry): entry for entry in entries}
        before = work.tokens
        if entries:
            work.admit(entries)
        return before + room

    def _take(self, lane: _Lane, line: _Line, room: int, now: float) -> list[Entry]:
        """Items of the jobs that wait, in their order, as many as fit; one at least if nothing is running."""
        entries: list[Entry] = []
        late: list[_Job] = []
        with self._changed:
            while line.waiting:
                job = line.waiting[0]
                if job.deadline is not None and now > job.deadline and job.taken == 0:
                    late.append(line.waiting.popleft())
                    lane.waiting_tokens -= sum(job.tokens)
                    continue
                first = job.taken
                while job.taken < len(job.items):
                    cost = job.tokens[job.taken]
                    if cost > room and (entries or line.running):
                        break
                    entries.append(Entry(job, job.taken, job.items[job.taken], cost))
                    room -= cost
                    lane.waiting_tokens -= cost
                    job.taken += 1
                if first == 0 < job.taken and self._observer is not None:
                    self._observer.began(self.device, now - job.since)
                if job.taken < len(job.items):
                    break
                line.waiting.popleft()
        for job in late:
            job.deliver([expired()])
            if self._observer is not None:
                self._observer.expired(self.device)
        return entries

    def _recover(self, lane: _Lane, line: _Line, error: Exception) -> list[Answer]:
        """After a failed turn: begin anew, with what was running one by one; what fails alone has failed."""
        with self._changed:
            running, line.running, line.work = list(line.running.values()), {}, None
            alone = len(running) == 1
            if not running and line.waiting:  # the work could not even be opened
                job = line.waiting.popleft()
                lane.waiting_tokens -= sum(job.tokens[job.taken :])
                running = [Entry(job, index, None, 0) for index in range(job.taken, len(job.items))]
                job.taken, alone = len(job.items), True
        if alone:
            return [Answer(entry, error) for entry in running]
        line.suspects.extend(running)
        return []

    def _deliver(self, answers: Sequence[Answer]) -> None:
        for (job, index, _, _), value in answers:
            job.answers[index] = value
            job.missing -= 1
            if not job.missing and not job.gone:
                job.deliver(job.answers)

    def _note_cancelled(self, items: int) -> None:
        if self._observer is not None and items:
            self._observer.cancelled(self.device, items)
