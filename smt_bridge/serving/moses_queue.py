"""One running Moses for many callers, who take turns: sentences wait here, and a thread of its own asks for them."""

from __future__ import annotations

import collections
import logging
import threading
import time
from collections.abc import Sequence
from concurrent.futures import Future
from typing import NamedTuple

from nmt_core.base.round_robin import RoundRobin
from smt_bridge.graphs.search import GraphReader
from smt_bridge.moses.process import MosesFailed, MosesLines, MosesOptions, MosesProcess

REST = 10.0
"""Seconds after Moses could not be used until it is tried again; meanwhile sentences fail at once."""

_log = logging.getLogger(__name__)
_LINGER = 60.0  # seconds
_AHEAD = 2  # sentences per thread that Moses has at once; more would make urgent ones wait


class Ticket(NamedTuple):
    """A sentence of a caller; its answer is its list, None where it was too much for Moses, or MosesFailed."""

    caller: str
    sentence: bytes
    answer: Future[MosesLines | None]


class MosesQueue:
    """Starts Moses when the first sentence comes, again after a failure, and never more than one.

    Its thread comes with the first sentence, too, and a queue that is retired has none while nobody asks. ``reader``
    reads search graphs. Failures are logged where ``warns``. ``counts`` has ``restarts`` and ``given_up`` of
    ``MosesProcess``, and ``failures``, how often it could not be used.
    """

    def __init__(self, options: MosesOptions, reader: GraphReader | None = None) -> None:
        self.options, self._reader = options, reader
        self.counts: collections.Counter[str] = collections.Counter()
        self._process: MosesProcess | None = None
        self._waiting: RoundRobin[Ticket] = RoundRobin(quantum=1)
        self._changed = threading.Condition()
        self._closed = self._retired = False
        self.warns = True
        self._error = MosesFailed(f"{options.program} was not started")
        self._rests_until = 0.0
        self._thread: threading.Thread | None = None

    @property
    def waiting(self) -> int:
        """Sentences that Moses does not have yet."""
        with self._changed:
            return sum(1 for _ in self._waiting)

    def ask(self, caller: str, sentence: bytes) -> Ticket:
        """Put a sentence into the queue; one that is asked for while Moses cannot be used fails at once."""
        ticket = Ticket(caller, sentence, Future())
        with self._changed:
            if self._closed or time.monotonic() < self._rests_until:
                ticket.answer.set_exception(self._error)
                return ticket
            if self._thread is None:
                thread = threading.Thread(target=self._run, name="moses", daemon=True)
                thread.start()  # where the system has no thread more, the next sentence tries it again
                self._thread = thread
            self._waiting.put(caller, ticket)
            self._changed.notify_all()
        return ticket

    def forget(self, ticket: Ticket) -> None:
        """Nobody waits for it any more; what Moses has already is not called back."""
        with self._changed:
            self._waiting.remove(ticket.caller, ticket)

    def retire(self) -> None:
        """Others have another Moses now: end this one when nobody has asked for a while, and start it if they do."""
        with self._changed:
            self._retired = True
            self._changed.notify_all()

    def close(self) -> None:
        """End Moses at once; what waits fails."""
        with self._changed:
            self._closed, self._error = True, MosesFailed(f"{self.options.program} was stopped")
            process, thread = self._process, self._thread
            self._changed.notify_all()
        if process is not None:
            process.stop()
        if thread is not None:
            thread.join()

    # ---- in the thread

    def _run(self) -> None:
        while batch := self._next():
            try:
                for ticket, lines in zip(batch, self._translated(batch), strict=True):
                    ticket.answer.set_result(lines)
            except MosesFailed as error:
                self._fail(error, batch)
            except Exception as error:  # whatever it is, nobody waits for ever
                self._fail(MosesFailed(f"{self.options.program} could not be asked: {error!r}"), batch)
        if self._closed:
            self._fail(self._error, [])

    def _next(self) -> list[Ticket]:
        """The next sentences, callers in turn; none at the end of the thread."""
        with self._changed:
            while not self._waiting and not self._closed:
                if not self._changed.wait(_LINGER if self._retired else None) and not self._waiting:
                    self._end()
                    self._thread = None
                    return []
            batch: list[Ticket] = []
            while self._waiting and not self._closed and len(batch) < _AHEAD * self.options.threads:
                ticket = self._waiting.first()
                self._waiting.use(1)
                self._waiting.remove(ticket.caller, ticket)
                batch.append(ticket)
            return batch

    def _translated(self, batch: Sequence[Ticket]) -> list[MosesLines | None]:
        """The answers. Raises MosesFailed where Moses cannot be started, fails, or is to be used no more."""
        if self._process is None:
            process = MosesProcess(self.options, self._reader).__enter__()
            with self._changed:
                self._process = process
                if self._closed:
                    process.stop()
        process = self._process
        before = process.restarts, process.given_up
        try:
            return process.translate([ticket.sentence for ticket in batch])
        finally:
            self.counts["restarts"] += process.restarts - before[0]
            self.counts["given_up"] += process.given_up - before[1]

    def _fail(self, error: MosesFailed, batch: Sequence[Ticket]) -> None:
        """Nobody who asked, or asks soon, has an answer."""
        self._end()
        with self._changed:
            self._error, self._rests_until = error, time.monotonic() + REST
            if not self._closed:
                self.counts["failures"] += 1
                if self.warns:
                    _log.warning("%s", error)
            batch = [*batch, *self._waiting]
            self._waiting = RoundRobin(quantum=1)
        for ticket in batch:
            ticket.answer.set_exception(error)

    def _end(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.__exit__(MosesFailed)
