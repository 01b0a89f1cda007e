"""From the queue into the work: which items of the jobs that wait are admitted."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import Any

from nmt_core.serving.lanes import Job, Lane, Line, deliver
from nmt_core.serving.observer import Observer
from nmt_core.serving.refusal import expired
from nmt_core.serving.work import Entry

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
        with self._changed:
            newcomers = self._take_newcomers(lane, line, now) if line.waiting and line.running else []
        for job in taken.late:
            job.fail(expired())
            if self._observer is not None:
                self._observer.expired(self._device)
        deliver(taken.late)
        return taken.entries + newcomers

    def _take_some(self, lane: Lane[Any], line: Line[Any], taken: _Taken, now: float) -> bool:
        """Some of them; whether there may be more."""
        for _ in range(_AT_A_TIME):
            if not line.waiting:
                return False
            job = line.waiting.first()
            if job.deadline is not None and now > job.deadline and job.taken == 0:
                taken.late.append(job)
                line.waiting.remove(job.client, job)
                lane.count(job.client, -job.waiting_tokens)
                continue
            cost = job.tokens[job.taken]
            if cost > taken.room and (taken.entries or line.running):
                return False
            taken.entries.append(self._take_one(lane, line, job, now))
            taken.room -= cost
        return True

    def _take_newcomers(self, lane: Lane[Any], line: Line[Any], now: float) -> list[Entry]:
        """One item of every client that has none running, as far as the work's spare room goes."""
        assert line.work is not None
        room = line.work.spare
        if room <= 0:
            return []
        running = {entry.owner.client for entry in line.running.values()}
        entries = []
        for client in [client for client in line.waiting.clients if client not in running]:
            job = line.waiting.first(client)
            if job.tokens[job.taken] <= room:
                room -= job.tokens[job.taken]
                entries.append(self._take_one(lane, line, job, now))
        return entries

    def _take_one(self, lane: Lane[Any], line: Line[Any], job: Job, now: float) -> Entry:
        """The next item of a waiting job."""
        if job.taken == 0 and self._observer is not None:
            self._observer.began(self._device, now - job.since)
        entry = job.take()
        line.running[id(entry)] = entry
        lane.count(job.client, -entry.tokens)
        if line.waiting.first() is job:
            line.waiting.use(entry.tokens)
        if job.taken == len(job.items):
            line.waiting.remove(job.client, job)
        return entry
