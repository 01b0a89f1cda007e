"""What an engine does for jobs, and batches that are done at a stroke; ``step_work`` has what advances step by step.

Free of gRPC and of torch. Amounts are in tokens, whatever the work calls so.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

from nmt_core.serving.batch_speed import BatchSpeed
from nmt_core.serving.engine.slices import SLICE, Sliced

LARGE = 400
"""Tokens of an item of a batch, or words of translations that are scored again, of which one alone may take seconds: it
is done in slices."""


class Entry(NamedTuple):
    """One item of a job: a caller's handle, the item, and what it costs."""

    owner: Any
    place: int
    item: Any
    tokens: int


class Answer(NamedTuple):
    """What came of an entry: a value, or the exception instead of it."""

    entry: Entry
    value: Any


class Work(Protocol):
    """Equal work of many callers on one device; used by the device's thread alone."""

    kind: str
    patient: bool
    """A batch that is not full may wait a moment for more."""

    @property
    def waits(self) -> float:
        """Seconds for which a turn would have nothing to do, but wait for something else than the device."""
        ...

    def room(self, seconds: float) -> int:
        """Tokens that may be admitted now, for a turn to take about ``seconds``."""
        ...

    @property
    def spare(self) -> int:
        """Tokens beyond the room, for callers of whom nothing is running."""
        ...

    def admit(self, entries: Sequence[Entry]) -> None:
        """Take entries in; the work may be made to take more than it has room for."""
        ...

    def turn(self) -> list[Answer]:
        """Do some of it. An exception means that all that was admitted is lost."""
        ...

    def cancel(self, entries: Sequence[Entry]) -> None:
        """Forget entries whose callers have gone."""
        ...

    @property
    def tokens(self) -> int:
        """What is admitted and not yet answered."""
        ...


class BatchWork:
    """``run(items)`` answers every item, in order; a turn is one call, sized by how fast the last ones were.

    Where tokens do not tell how long items take, ``choose(items)`` gives the places of those that a turn is for: one
    at least. The others are done in the turns after it, and what has been cancelled by then is not done at all.
    A call for a ``LARGE`` item, or one that takes more than two turns' time, is done in slices, each a turn; it ends
    when all its items are cancelled.
    When a call fails it is tried in halves, so that an item that cannot be done (or a batch that does
    not fit in memory) takes no other with it; after ``_PATIENCE`` failures the rest is given up.
    """

    patient = True
    waits = 0.0
    spare = 0
    _PATIENCE = 20

    def __init__(
        self,
        kind: str,
        run: Callable[[Sequence[Any]], Sequence[Any]],
        *,
        choose: Callable[[Sequence[Any]], Sequence[int]] | None = None,
        most: int = 100_000,
        rate: float = 20_000.0,
    ) -> None:
        self.kind, self._run, self._choose, self._most = kind, run, choose, most
        self._speed = BatchSpeed(rate)
        self._entries: list[Entry] = []
        self._begun: list[Entry] = []
        self._sliced: Sliced[list[Answer]] | None = None
        self._spent = 0.0  # seconds, on what is begun
        self._turn = math.inf  # seconds that one may take, when it is known
        self._failures = 0

    @property
    def tokens(self) -> int:
        """What this turn and the next ones will do."""
        return sum(entry.tokens for entry in (*self._begun, *self._entries))

    def room(self, seconds: float) -> int:
        """As much as goes in that time, or in twice the least; nothing when a batch is ready, or begun."""
        self._turn = seconds
        return 0 if self._entries or self._begun else max(1, min(self._most, self._speed.tokens_in(seconds)))

    def admit(self, entries: Sequence[Entry]) -> None:
        """Make them the next batch, or part of it."""
        self._entries += entries

    def cancel(self, entries: Sequence[Entry]) -> None:
        """Take them out of the next batch, and out of the one that is begun."""
        gone = set(map(id, entries))
        self._entries = [entry for entry in self._entries if id(entry) not in gone]
        self._begun = [entry for entry in self._begun if id(entry) not in gone]
        if self._sliced is not None and not self._begun:
            self._sliced.give_up()
            self._sliced = None

    def turn(self) -> list[Answer]:
        """Run the batch, or what is chosen of it, or a slice of that."""
        begins = self._sliced is None
        if begins:
            self._begun, self._spent, self._failures = self._take_chosen(), 0.0, 0
        tokens, begin = sum(entry.tokens for entry in self._begun), time.monotonic()
        answers = self._advance()
        self._spent += time.monotonic() - begin
        if self._sliced is not None:
            return []
        begun, self._begun = self._begun, []
        if tokens and not self._failures:
            self._speed.note(tokens, self._spent)
        if begins:  # and ends: nothing of it was cancelled
            return answers
        wanted = set(map(id, begun))
        return [answer for answer in answers if id(answer.entry) in wanted]

    def _take_chosen(self) -> list[Entry]:
        """What the next call is for; the others stay."""
        entries, self._entries = self._entries, []
        if self._choose is not None and entries:
            chosen = set(self._choose([entry.item for entry in entries]))
            self._entries = [entry for place, entry in enumerate(entries) if place not in chosen]
            entries = [entry for place, entry in enumerate(entries) if place in chosen]
        return entries

    def _advance(self) -> list[Answer]:
        """The answers to what is begun; none, with ``_sliced`` set, as long as it goes on."""
        if self._sliced is None:
            begun = list(self._begun)
            if not self._take_long(begun):
                return self._answers(begun)
            self._sliced = Sliced(lambda: self._answers(begun))
        if not self._sliced.advance(SLICE):
            return []
        sliced, self._sliced = self._sliced, None
        return sliced.result()

    def _take_long(self, entries: Sequence[Entry]) -> bool:
        """Whether others would wait long for these. Even the least that a batch does can take many turns' time."""
        seconds = self._speed.seconds_for(sum(entry.tokens for entry in entries))
        return seconds > 2 * self._turn or any(entry.tokens > LARGE for entry in entries)

    def _answers(self, entries: Sequence[Entry]) -> list[Answer]:
        if not entries:
            return []
        try:
            values = self._run([entry.item for entry in entries])
            assert len(values) == len(entries), "a run must answer every item"
            return list(map(Answer, entries, values))
        except Exception as error:  # whatever a model raises belongs to the callers of these items
            self._failures += 1
            if len(entries) == 1 or self._failures > self._PATIENCE:
                return [Answer(entry, error) for entry in entries]
        half = len(entries) // 2
        return self._answers(entries[:half]) + self._answers(entries[half:])
