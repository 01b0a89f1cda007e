"""One iteration of a device: a queue's waiting items enter its work, the work does a batch or a step, answers leave.

An iteration that takes long is done in slices, and other queues have the device in between; nobody enters or leaves
its work meanwhile. An item whose caller has gone leaves before the next iteration; a job whose deadline has passed is
never started. The items of an iteration that fails run again one by one, so that only the item at fault fails.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any, Generic, Protocol

from nmt_core.serving.engine.jobs import Answer, Entry, Job, Unfinished, deliver
from nmt_core.serving.engine.queue import BatchQueue, Key, Queues
from nmt_core.serving.engine.slices import SLICE, Sliced
from nmt_core.serving.engine.work import Work
from nmt_core.serving.errors import expired

_AT_A_TIME = 200  # items, for which the event loop may wait
_LONG = 2  # times the seconds that an iteration should take: others do not wait so long for its end


class Observer(Protocol):
    """Is told what a device does, by the device's thread."""

    def began(self, device: str, waited: float) -> None:
        """A job left the queue after so many seconds."""
        ...

    def iterated(self, device: str, kind: str, *, tokens: int, room: int, seconds: float) -> None:
        """An iteration, or a slice of one, was done with ``tokens`` of the ``room`` there was."""
        ...

    def cancelled(self, device: str, items: int) -> None:
        """Items of callers that had gone were dropped, waiting or running."""
        ...

    def expired(self, device: str) -> None:
        """A job was dropped because its deadline had passed."""
        ...


class Iterations(Generic[Key]):
    """Used by an engine's thread; ``changed`` guards the queues, which the event loop changes, too.

    ``open_work(key)`` makes the work of a key.
    """

    def __init__(
        self,
        open_work: Callable[[Key], Work],
        device: str,
        queues: Queues[Key],
        changed: threading.Condition,
        observer: Observer | None,
    ) -> None:
        self._open_work, self._device, self._queues = open_work, device, queues
        self._changed, self._observer = changed, observer

    def run(self, queue: BatchQueue[Key]) -> None:
        """An iteration of a queue, or a slice of it. What its work raises becomes the answers of the items at fault."""
        begin, room, tokens = time.monotonic(), 0, 0
        try:
            work = queue.work = queue.work or self._open_work(queue.key)
            self._drop_cancelled(queue, work)
            with self._changed:
                wanted = self._queues.iteration_seconds(queue, begin)
            if queue.sliced is None:
                room = self._admit(queue, work, wanted, begin)
            tokens = work.tokens
            answers = self._advance(queue, work, wanted)
        except Exception as error:
            answers, tokens = self._recover(queue, error), 0
        seconds = time.monotonic() - begin
        with self._changed:
            finished = self._settle(queue, answers)
            answered = sum(answer.entry.tokens for answer in answers)
            self._queues.used(queue, tokens=answered, begin=begin, seconds=seconds)
        deliver(finished)
        if tokens and self._observer is not None:
            self._observer.iterated(self._device, work.kind, tokens=tokens, room=room, seconds=seconds)

    def _drop_cancelled(self, queue: BatchQueue[Key], work: Work) -> None:
        """Free what callers that have gone have in the work; within an iteration only if all of it is theirs."""
        gone = [entry for entry in queue.running.values() if entry.job.first.cancelled]
        if not gone:
            return
        if queue.sliced is not None:
            if not all(entry.job.first.cancelled for entry in work.prepared):
                return
            queue.sliced.give_up(wait=True)
            queue.sliced = None
        work.cancel(gone)
        with self._changed:
            for entry in gone:
                del queue.running[id(entry)]
                queue.leave(entry.job.client, 1)
        if self._observer is not None:
            self._observer.cancelled(self._device, len(gone))

    def _advance(self, queue: BatchQueue[Key], work: Work, wanted: float) -> list[Answer]:
        """The answers of an iteration, or none as long as slices of it are left."""
        if queue.sliced is None:
            begin = time.monotonic()
            if work.prepare() <= _LONG * wanted:
                answers = work.iterate()
                work.took(time.monotonic() - begin)
                return answers
            queue.sliced = Sliced(work.iterate)
        if not queue.sliced.advance(SLICE):
            return []
        sliced, queue.sliced = queue.sliced, None
        answers = sliced.result()
        work.took(sliced.seconds)
        return answers

    def _settle(self, queue: BatchQueue[Key], answers: Sequence[Answer]) -> list[Job]:
        """Let answers leave the queue; callers' jobs that have all answers now. First results become second jobs."""
        finished: list[Job] = []
        for entry, value in answers:
            queue.running.pop(id(entry), None)
            queue.leave(entry.job.client, 1)
            if not isinstance(value, Unfinished):
                finished += entry.job.answer(entry.number, value)
            elif not entry.job.first.cancelled:
                assert queue.work is not None
                second = Job(entry.job.client, [value.item], [value.tokens], parent=entry)
                self._queues.put(queue.work.second, queue.priority, second)  # type: ignore[arg-type]  # a key
        return finished

    def _recover(self, queue: BatchQueue[Key], error: Exception) -> list[Answer]:
        """After a failure: start again, with what was running one by one; what fails alone has failed."""
        with self._changed:
            work, running = queue.work, list(queue.running.values())
            queue.running, queue.work = {}, None
            alone = len(running) == 1
            if not running and queue.waiting:  # the work could not even be opened
                job = queue.waiting.first()
                while job.taken < len(job.items):
                    running += queue.take(job, most=len(job.items), room=job.waiting_tokens)
                alone = True
            if not alone:
                queue.suspects.extend(running)  # with the lock held: an idle queue is forgotten
        give_up(queue, work, running)
        return [Answer(entry, error) for entry in running] if alone else []

    def _admit(self, queue: BatchQueue[Key], work: Work, seconds: float, now: float) -> int:
        """Move waiting items into the work; the room there was for all that is in it now."""
        with self._changed:
            while queue.suspects and queue.suspects[0].job.first.cancelled:
                queue.leave(queue.suspects.popleft().job.client, 1)
            one_by_one = bool(queue.suspects)
            entries = [queue.suspects.popleft()] if queue.suspects and not queue.running else []
            queue.running |= {id(entry): entry for entry in entries}
        if one_by_one:
            room = sum(entry.tokens for entry in entries)
        else:
            room = work.room(seconds)
            entries = self._take(queue, work, room, now)
        before = work.tokens
        if entries:
            work.admit(entries)
        return before + room

    def _take(self, queue: BatchQueue[Key], work: Work, room: int, now: float) -> list[Entry]:
        """Items of the jobs that wait, clients in turns, as many as fit; one at least if nothing is running.

        A client that has nothing running has the overcommitted room as well, for one item.
        """
        entries: list[Entry] = []
        late: list[Job] = []
        more = True
        while more:
            with self._changed:
                some, more = self._take_some(queue, room, late, now)
                room -= sum(entry.tokens for entry in some)
                entries += some
                if not more and queue.waiting and queue.running:
                    entries += self._take_newcomers(queue, work.overcommit, late, now)
        for job in late:
            job.fail(expired())
        deliver(late)
        if self._observer is not None:
            for _ in late:
                self._observer.expired(self._device)
            for entry in entries:
                if entry.number == 0 and entry.job.parent is None:
                    self._observer.began(self._device, now - entry.job.since)
        return entries

    def _take_some(self, queue: BatchQueue[Key], room: int, late: list[Job], now: float) -> tuple[list[Entry], bool]:
        """Some of them, and whether there may be more."""
        entries: list[Entry] = []
        while len(entries) < _AT_A_TIME:
            job = self._first(queue, None, late, now)
            if job is None or (job.cost > room and queue.running):
                return entries, False
            found = queue.take(job, most=_AT_A_TIME - len(entries), room=room)
            room -= sum(entry.tokens for entry in found)
            entries += found
        return entries, True

    def _take_newcomers(self, queue: BatchQueue[Key], room: int, late: list[Job], now: float) -> list[Entry]:
        """One item of every client that has none running, as far as the room goes.

        Nobody passes a client whose item needs more than is left: it would wait as long as others come.
        """
        entries: list[Entry] = []
        for client in queue.newcomers if room > 0 else ():
            job = self._first(queue, client, late, now)
            if job is None:
                continue
            if job.cost > room:
                break
            room -= job.cost
            entries += queue.take(job, most=1, room=room)
        return entries

    def _first(self, queue: BatchQueue[Key], client: str | None, late: list[Job], now: float) -> Job | None:
        """The next job, of that client or of the one whose turn it is, that is neither late nor cancelled."""
        while queue.waiting and (client is None or client in queue.waiting.clients):
            job = queue.waiting.first(client)
            if not (job.first.cancelled or job.is_late(now)):
                return job
            queue.remove(job)
            if not job.first.cancelled:
                late.append(job)
        return None


def give_up(queue: BatchQueue[Any], work: Work | None, entries: Sequence[Entry]) -> None:
    """Let go of a work that has failed with these entries, and of what it has begun in threads of its own."""
    if queue.sliced is not None:
        queue.sliced.give_up(wait=True)
        queue.sliced = None
    if work is not None:
        with contextlib.suppress(Exception):  # it may be broken
            work.cancel(entries)
