"""From the queue into the work: which items of the jobs that wait are admitted."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import Any

from nmt_core.serving.engine.work import Entry
from nmt_core.serving.errors import expired
from nmt_core.serving.lanes import Job, Lane, Line, deliver
from nmt_core.serving.observer import Observer

_AT_A_TIME = 200  # items, for which the event loop may wait


@dataclass
class _Taken:
    """What was taken so far, with the room that is left, and jobs whose deadline had passed."""

    room: int
    entries: list[Entry] = field(default_factory=list)
    late: list[Job] = field(default_factory=list)


class Intake:
    """Used by the thread of an engine; ``changed`` guards the lanes, which the event loop changes, too."""

    def __init__(self, device: str, changed: threading.Condition, observer: Observer | None) -> None:
        self._device, self._changed, self._observer = device, changed, observer

    def take(self, lane: Lane[Any], line: Line[Any], room: int, now: float) -> list[Entry]:
        """Items of the jobs that wait, clients in turns, as many as fit; one at least if nothing is running.

        Of a client that has nothing running one item has the work's spare room.
        """
        taken, more = _Taken(room), True
        while more:
            with self._changed:
                more = self._take_some(lane, line, taken, now)
                if not more and line.waiting and line.running:
                    self._take_newcomers(lane, line, taken, now)
        if taken.late:
            self._refuse(taken.late)
        return taken.entries

    def _refuse(self, late: list[Job]) -> None:
        """Tell callers that their deadlines have passed."""
        for job in late:
            job.fail(expired())
            if self._observer is not None:
                self._observer.expired(self._device)
        deliver(late)

    def _take_some(self, lane: Lane[Any], line: Line[Any], taken: _Taken, now: float) -> bool:
        """Some of them; whether there may be more."""
        left = _AT_A_TIME
        while left > 0:
            if not line.waiting:
                return False
            job = line.waiting.first()
            if job.is_late(now):
                _take_out(lane, line, taken, job)
                left -= 1
                continue
            if job.cost > taken.room and (taken.entries or line.running):
                return False
            entries, tokens = self._take_of(job, lane, line, now, most=left, room=taken.room)
            taken.entries += entries
            taken.room -= tokens
            left -= len(entries)
        return True

    def _take_newcomers(self, lane: Lane[Any], line: Line[Any], taken: _Taken, now: float) -> None:
        """One item of every client that has none running, as far as the work's spare room goes.

        Nobody passes one whose item needs more than is left: it would wait as long as others come.
        """
        assert line.work is not None
        room = line.work.spare
        for client in line.newcomers if room > 0 else ():
            job = line.waiting.first(client)
            if job.is_late(now):
                _take_out(lane, line, taken, job)
                continue
            if job.cost > room:
                return
            entries, tokens = self._take_of(job, lane, line, now, most=1, room=room)
            taken.entries += entries
            room -= tokens

    def _take_of(
        self, job: Job, lane: Lane[Any], line: Line[Any], now: float, *, most: int, room: int
    ) -> tuple[list[Entry], int]:
        """The next items of a waiting job, one at least, as far as its client's turn goes; and their tokens."""
        if job.taken == 0 and self._observer is not None:
            self._observer.began(self._device, now - job.since)
        before = job.waiting_tokens
        entries = job.take(most=most, room=room, turn=line.waiting.turn)
        tokens = before - job.waiting_tokens
        line.running.update(zip(map(id, entries), entries, strict=True))
        lane.count(job.client, -tokens)
        if line.waiting.first() is job:
            line.waiting.use(tokens)
        if job.taken == len(job.items):
            line.waiting.remove(job.client, job)
        return entries, tokens


def _take_out(lane: Lane[Any], line: Line[Any], taken: _Taken, job: Job) -> None:
    """A job whose deadline has passed."""
    taken.late.append(job)
    line.waiting.remove(job.client, job)
    lane.count(job.client, -job.waiting_tokens)
