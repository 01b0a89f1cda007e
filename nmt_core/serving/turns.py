"""One turn of a device: what waits is admitted to the work of its line, the work does a batch or a step, answers leave.

A job whose caller has gone leaves the running work before its next turn; a job whose deadline has passed
is never begun. What a failing turn takes with it is tried again item by item, so that only the item at
fault fails.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any, Generic

from nmt_core.serving.engine.queue import Scheduler
from nmt_core.serving.engine.work import Answer, Entry, Work
from nmt_core.serving.intake import Intake
from nmt_core.serving.lanes import Key, Lane, Line, deliver
from nmt_core.serving.observer import Observer


class Turns(Generic[Key]):
    """Used by the thread of an engine; ``changed`` guards the lanes, which the event loop changes, too.

    ``open_work(key)`` makes the work of a key.
    """

    def __init__(
        self,
        open_work: Callable[[Key], Work],
        device: str,
        scheduler: Scheduler[Key],
        changed: threading.Condition,
        observer: Observer | None,
    ) -> None:
        self._open_work, self._device, self._scheduler = open_work, device, scheduler
        self._changed, self._observer = changed, observer
        self._intake = Intake(device, changed, observer)

    def take(self, lane: Lane[Key], line: Line[Key]) -> None:
        """Take the turn of a line. What its work raises becomes the answers of those at fault."""
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
            answered = sum(answer.entry.tokens for answer in answers)
            self._scheduler.turned(lane, line, tokens=answered, begin=begin, seconds=seconds)
        _deliver(answers)
        if tokens and line.work is not None and self._observer is not None:
            self._observer.turned(self._device, line.work.kind, tokens=tokens, room=room, seconds=seconds)

    def _let_go(self, line: Line[Key], work: Work) -> None:
        """Free what callers who have gone have in the running work."""
        gone = [entry for entry in line.running.values() if entry.owner.gone]
        if gone:
            work.cancel(gone)
            with self._changed:
                for entry in gone:
                    del line.running[id(entry)]
            if self._observer is not None:
                self._observer.cancelled(self._device, len(gone))

    def _admit(self, lane: Lane[Key], line: Line[Key], work: Work, now: float) -> int:
        """Move waiting items into the work; the room there was for all that is in it now."""
        with self._changed:
            while line.suspects and line.suspects[0].owner.gone:
                line.suspects.popleft()
            one_by_one = bool(line.suspects)
            entries = [line.suspects.popleft()] if line.suspects and not line.running else []
            line.running |= {id(entry): entry for entry in entries}
            seconds = self._scheduler.turn_seconds(lane, line, now)
        if one_by_one:
            room = sum(entry.tokens for entry in entries)
        else:
            room = work.room(seconds)
            entries = self._intake.take(lane, line, room, now)
        before = work.tokens
        if entries:
            work.admit(entries)
        return before + room

    def _recover(self, lane: Lane[Key], line: Line[Key], error: Exception) -> list[Answer]:
        """After a failed turn: begin anew, with what was running one by one; what fails alone has failed."""
        with self._changed:
            work, running = line.work, list(line.running.values())
            line.running, line.work = {}, None
            alone = len(running) == 1
            if not running and line.waiting:  # the work could not even be opened
                job = line.waiting.first()
                line.waiting.remove(job.client, job)
                lane.count(job.client, -job.waiting_tokens)
                running = [Entry(job, index, None, 0) for index in range(job.taken, len(job.items))]
                job.taken, job.waiting_tokens, alone = len(job.items), 0, True
            if not alone:
                line.suspects.extend(running)  # with the lock held: a line without any is forgotten
        give_up(work, running)
        return [Answer(entry, error) for entry in running] if alone else []


def give_up(work: Work | None, entries: Sequence[Entry]) -> None:
    """Let go of a work that has failed with these entries, and of what it has begun in threads of its own."""
    if work is not None:
        with contextlib.suppress(Exception):  # it may be broken
            work.cancel(entries)


def _deliver(answers: Sequence[Answer]) -> None:
    """Give jobs their answers, and callers the jobs that have all of theirs."""
    finished: list[Any] = []
    for (job, place, _, _), value in answers:
        job.answers[place] = value
        job.missing -= 1
        if not job.missing:
            finished.append(job)
    deliver(finished)
