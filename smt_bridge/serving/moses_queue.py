"""One running Moses for many callers, who take turns: sentences wait here, and a thread of its own asks for them."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Sequence

from nmt_core.serving.engine.jobs import RoundRobin
from smt_bridge.graphs.phrase_graph import PhraseGraph
from smt_bridge.graphs.search import GraphReader
from smt_bridge.moses.process import MosesFailed, MosesLines, MosesOptions, MosesProcess

REST = 10.0
"""Seconds after Moses could not be used until it is tried again; meanwhile sentences fail at once."""

_log = logging.getLogger(__name__)
_LINGER = 60.0  # seconds
_AHEAD = 2  # sentences per thread that Moses has at once; more would make urgent ones wait


class Ticket:
    """A sentence and, once it is ``done``, its list, None where it was too much for Moses, or why there is neither."""

    def __init__(self, caller: str, sentence: bytes) -> None:
        self.caller, self.sentence = caller, sentence
        self.lines: MosesLines | None = None
        self.error: MosesFailed | None = None
        self._settled = threading.Event()

    def settle(self, lines: MosesLines | None, error: MosesFailed | None = None) -> None:
        """Give the answer; ``done`` comes last, since nobody locks."""
        self.lines, self.error = lines, error
        self._settled.set()

    @property
    def graph(self) -> PhraseGraph | None:
        """The sentence's search graph, where it was read."""
        return self.lines.graph.graph if self.lines and self.lines.graph else None

    @property
    def done(self) -> bool:
        """Whether there is an answer."""
        return self._settled.is_set()

    def wait(self) -> Ticket:
        """This, once there is an answer."""
        self._settled.wait()
        return self


class MosesQueue:
    """Starts Moses when the first sentence comes, again after a failure, and never more than one.

    Its thread comes with the first sentence, too, and a queue that is retired has none while nobody asks. ``reader``
    reads search graphs. ``restarts`` and ``given_up`` count as those of ``MosesProcess``, ``failures`` how often it
    could not be used.
    """

    def __init__(self, options: MosesOptions, reader: GraphReader | None = None) -> None:
        self.options, self._reader = options, reader
        self.failures = 0
        self._counted = (0, 0)  # restarts and given up, of processes that have ended
        self._process: MosesProcess | None = None
        self._waiting: RoundRobin[Ticket] = RoundRobin(quantum=1)
        self._changed = threading.Condition()
        self._closed = self._retired = False
        self._error = MosesFailed(f"{options.program} was not started")
        self._rests_until = 0.0
        self._thread: threading.Thread | None = None

    @property
    def restarts(self) -> int:
        """How often a process was started in place of one that had ended or hung."""
        process = self._process
        return self._counted[0] + (process.restarts if process else 0)

    @property
    def given_up(self) -> int:
        """Sentences that ended it twice."""
        process = self._process
        return self._counted[1] + (process.given_up if process else 0)

    @property
    def waiting(self) -> int:
        """Sentences that Moses does not have yet."""
        with self._changed:
            return sum(1 for _ in self._waiting)

    @property
    def has_thread(self) -> bool:
        """Whether its thread is there."""
        return self._thread is not None

    @property
    def works(self) -> bool:
        """Whether it runs, or will be started at the next sentence."""
        return not self._closed and time.monotonic() >= self._rests_until

    def ask(self, caller: str, sentence: bytes) -> Ticket:
        """Put a sentence into the queue; one that is asked for while Moses cannot be used is settled at once."""
        ticket = Ticket(caller, sentence)
        with self._changed:
            if self.works:
                if self._thread is None:
                    thread = threading.Thread(target=self._run, name="moses", daemon=True)
                    thread.start()  # where the system has no thread more, the next sentence tries it again
                    self._thread = thread
                self._waiting.put(caller, ticket)
                self._changed.notify_all()
            else:
                ticket.settle(None, self._error)
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
                process = self._running()
                answers = process.translate([ticket.sentence for ticket in batch])
                for ticket, lines in zip(batch, answers, strict=True):
                    ticket.settle(lines)
            except MosesFailed as error:
                self._fail(error, batch)
            except Exception as error:  # whatever it is, nobody waits for ever
                self._fail(MosesFailed(f"{self.options.program} could not be asked: {error!r}"), batch)
        if self._closed:
            self._fail(self._error, [])

    def _next(self) -> list[Ticket]:
        """The sentences whose turn it is; none at the end, which is that of the thread."""
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

    def _running(self) -> MosesProcess:
        """The process; raises MosesFailed where it cannot be started, or is not to be any more."""
        if self._process is None:
            process = MosesProcess(self.options, self._reader).__enter__()
            with self._changed:
                self._process = process
                if self._closed:
                    process.stop()
        return self._process

    def _fail(self, error: MosesFailed, batch: Sequence[Ticket]) -> None:
        """Nobody who asked, or asks soon, has an answer."""
        self._end()
        with self._changed:
            self._error, self._rests_until = error, time.monotonic() + REST
            if not self._closed:
                self.failures += 1
                _log.warning("%s", error)
            batch = [*batch, *self._waiting]
            self._waiting = RoundRobin(quantum=1)
        for ticket in batch:
            ticket.settle(None, error)

    def _end(self) -> None:
        process = self._process
        if process is None:
            return
        counted = self.restarts, self.given_up
        self._process, self._counted = None, counted
        process.__exit__(MosesFailed)
