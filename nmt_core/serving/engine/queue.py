"""Which work a device does next: its lanes, what may wait in them, and whose turn it is.

Lanes share the device by time: when all have work, interactive jobs get eight parts of it, long
searches two and bulk jobs one, and when some are idle the others get all. So none starves, and an
interactive job waits for at most one short turn of another lane. Within a lane, keys share its time, so that the keys
that one client alone uses have together no more than that of another; and clients of a key take turns: nobody waits
until another client's jobs are done. ``time_share`` says what becomes of the time of those who have nothing to do.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable
from typing import Any, Generic

from nmt_core.serving.engine.work import Work
from nmt_core.serving.errors import busy
from nmt_core.serving.lanes import RECENTLY, SHARES, Job, Key, Lane, Line
from nmt_core.serving.time_share import least_used_first, passed_by

SHORT_TURN = 0.02
"""Seconds of a turn while other work waits for the device, or did recently."""

_LONG_TURN = 0.5
_SHARED_STEP, _SHORT_SHARED_STEP = 0.02, 0.01  # of a search that clients share, alone and beside other work
_KEPT = 32  # lines of a lane, as far as they are idle


class Scheduler(Generic[Key]):
    """The lanes of one engine. Every method is called with the lock of the engine held.

    ``capacity`` bounds the tokens that wait in each lane, ``client_capacity`` those of one client there; a batch that
    is not full waits ``delay`` seconds for more, but not while the engine is ``closing``.
    """

    def __init__(self, *, capacity: int, client_capacity: int | None, delay: float) -> None:
        self._capacity, self._delay = capacity, delay
        self._client_capacity = capacity if client_capacity is None else client_capacity
        self.closing = False
        self.lanes = _empty_lanes()
        self._filling: Line[Key] | None = None  # whose batch the thread waits to be fuller, having nothing else to do
        self._unwanted: Callable[[Key], bool] = lambda key: False
        self._done, self._spent = 0.0, 0.0  # tokens answered and seconds used, of late

    @property
    def waiting_tokens(self) -> int:
        """How much waits, without what is being done."""
        return sum(lane.waiting_tokens for lane in self.lanes.values())

    @property
    def running_items(self) -> int:
        """Items that are being done."""
        return sum(len(line.running) for lane in self.lanes.values() for line in lane.lines.values())

    # ---- the queue

    def put(self, key: Key, job: Job, lane_name: str) -> bool:
        """Let a job wait; whether there is something to do at once. Raises Refusal for a full queue."""
        lane = self.lanes[lane_name]
        self._check_capacity(lane, job.client, job.waiting_tokens)
        if lane.idle:
            lane.join(self.lanes.values())
        line = lane.lines.get(key)
        if line is None:
            line = lane.lines[key] = Line(key)
        if line.idle:
            line.join(lane.lines.values())
        line.waiting.put(job.client, job)
        lane.count(job.client, job.waiting_tokens)
        return line is not self._filling or self._pause(lane, line) <= 0

    def remove(self, key: Key, job: Job, lane_name: str) -> int:
        """Take a job out of the queue; how many of its items waited there."""
        lane = self.lanes[lane_name]
        line = lane.lines.get(key)
        if line is None or not line.waiting.remove(job.client, job):
            return 0
        lane.count(job.client, -job.waiting_tokens)
        self._let_go(lane, line)
        _keep_latest(lane)
        return len(job.items) - job.taken

    def clear(self) -> list[Line[Key]]:
        """Forget everything; the lines that there were."""
        lines = [line for lane in self.lanes.values() for line in lane.lines.values()]
        self.lanes, self._filling = _empty_lanes(), None
        return lines

    def forget(self, unwanted: Callable[[Key], bool]) -> None:
        """Let go of the works of keys that nobody will use again, of each as soon as it is idle."""
        self._unwanted = unwanted
        for lane in self.lanes.values():
            for line in list(lane.lines.values()):
                self._let_go(lane, line)

    def _let_go(self, lane: Lane[Key], line: Line[Key]) -> None:
        """Forget a line that is idle and unwanted."""
        if line.idle and self._unwanted(line.key):
            del lane.lines[line.key]

    def _check_capacity(self, lane: Lane[Key], client: str, cost: int) -> None:
        """Raises Refusal for a full queue."""
        waiting, mine = lane.waiting_tokens, lane.of_client[client]
        if not ((waiting and waiting + cost > self._capacity) or (mine and mine + cost > self._client_capacity)):
            return
        seconds = min(max(waiting * self._spent / self._done, 0.2), 30.0) if self._done else 1.0
        what = f"{waiting} tokens wait" if waiting + cost > self._capacity else f"{mine} tokens of this client wait"
        raise busy(f"the queue is full ({what}); try again later", reason="QUEUE_FULL", retry_after=seconds)

    # ---- turns

    def choose(self) -> tuple[tuple[Lane[Key], Line[Key]] | None, float | None]:
        """The lane and line whose turn it is, or None and how long to wait for a fuller batch."""
        pauses = []
        self._filling, paused = None, None
        passed: list[Lane[Key]] = []
        for lane in least_used_first(self.lanes.values()):
            waiting: list[Line[Key]] = []
            lane.share_out()
            for line in least_used_first(lane.lines.values()):
                pause = self._pause(lane, line)
                if pause <= 0:
                    passed_by(passed, lane)
                    passed_by(waiting, line)
                    return (lane, line), None
                pauses.append(pause)
                waiting.append(line)
                paused = line
            passed.append(lane)
        if len(pauses) == 1:
            self._filling = paused
        return None, min(pauses, default=None)

    def turn_seconds(self, lane: Lane[Key], line: Line[Key], now: float) -> float:
        """How long a turn of a line should take: not long where others have work, or had some recently.

        Nor where clients share a search, since a sentence takes many turns of it.
        """
        others = (one for one in (*self.lanes.values(), *lane.lines.values()) if one not in (lane, line))
        beside = any(now - one.last < RECENTLY or not one.idle for one in others)
        if len(line.clients) > 1:
            line.shared = now
        if line.work is not None and not line.work.patient and now - line.shared < RECENTLY:
            return _SHORT_SHARED_STEP if beside else _SHARED_STEP
        return SHORT_TURN if beside else _LONG_TURN

    def turned(self, lane: Lane[Key], line: Line[Key], *, tokens: int, begin: float, seconds: float) -> None:
        """A turn of a line that began then took so long, and answered so many tokens."""
        self._done = 0.95 * self._done + tokens
        self._spent = 0.95 * self._spent + seconds
        for one in (lane, line):
            one.use(seconds, begin=begin)
        if lane.lines.get(line.key) is line:
            lane.lines.move_to_end(line.key)  # behind those that came meanwhile
            self._let_go(lane, line)
            _keep_latest(lane)

    def _pause(self, lane: Lane[Key], line: Line[Key]) -> float:
        """For how long the next batch of a line may wait for more, or its work for what is done elsewhere."""
        if line.running and line.work is not None and line.work.waits:
            seconds = self.turn_seconds(lane, line, time.monotonic())
            if not _is_wanted(line, line.work, seconds):
                return line.work.waits
        if not line.waiting or self.closing or line.work is None or not line.work.patient or line.running:
            return 0.0
        room = line.work.room(SHORT_TURN)
        waiting = itertools.accumulate(job.waiting_tokens for job in line.waiting)
        if any(tokens >= room for tokens in waiting):  # looks no further than what fills a batch
            return 0.0
        return line.waiting.first().since + self._delay - time.monotonic()


def _empty_lanes() -> dict[str, Lane[Any]]:
    return {name: Lane(share) for name, share in SHARES.items()}


def _keep_latest(lane: Lane[Any]) -> None:
    """Of many lines, forget the idle one whose turn was longest ago: clients choose options, and so keys."""
    if len(lane.lines) > _KEPT:
        key = next((key for key, line in lane.lines.items() if line.idle), None)
        lane.lines.pop(key, None)


def _is_wanted(line: Line[Any], work: Work, seconds: float) -> bool:
    """Whether something can enter the work of a line, with turns of so many seconds, or leave it."""
    if any(one.owner.gone for one in line.running.values()):
        return True
    if not line.waiting:
        return False
    newcomers = line.newcomers
    enters = bool(newcomers) and line.waiting.first(newcomers[0]).cost <= work.spare
    return enters or line.waiting.first().cost <= work.room(seconds)
