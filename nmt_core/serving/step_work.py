"""Hypotheses that advance step by step, in a batch that items enter and leave. Free of gRPC and of torch."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any, Protocol

from nmt_core.serving.engine.slices import SLICE, Sliced
from nmt_core.serving.engine.work import Answer, Entry

_REFILL = 0.5  # of a full batch: below, waiting items are let in; a few at a time cost more than rows that are free
_SPARE = 1.5  # full batches: what sentences of clients who have none running may fill
_TIMED = 32  # the part of a full batch from which its step is timed: half of the smallest that is ever filled up
_FIRST_GUESS = 0.25  # seconds of a step with a full batch, until one was measured
_SLOWEST = 0.16  # the same, however slow: in small batches each sentence takes longer


class StepDecoder(Protocol):
    """A search whose batch changes from step to step: what ``StepWork`` drives. Keys are any hashable values."""

    def admit(self, requests: Sequence[tuple[int, Any]]) -> None:
        """Take in items, each under a key."""
        ...

    def step(self) -> list[tuple[int, Any]]:
        """Advance all by one step; the keys that are finished, and their answers."""
        ...

    def cancel(self, keys: Sequence[int]) -> None:
        """Drop items."""
        ...

    @property
    def tokens(self) -> float:
        """The size of the batch now; what is nearly finished may count less than when it entered."""
        ...

    @property
    def waits(self) -> float:
        """Seconds after which to look again, where a step would find nothing to do now; 0 where it would."""
        ...


class StepWork:
    """A decoder's running batch: finished and cancelled items leave it, and others take their place, at every step.

    With an item that is more than a full batch by itself, as a wide search of a long text, a step takes several turns,
    a slice of it each. Nobody enters or leaves within a step; it ends when all its items are cancelled.
    """

    patient = False

    def __init__(self, kind: str, decoder: StepDecoder, *, most: int) -> None:
        self.kind, self._decoder, self._most = kind, decoder, most
        self._running: dict[int, Entry] = {}
        self._entering: list[tuple[int, Any]] = []
        self._leaving: list[int] = []
        self._sliced: Sliced[list[tuple[int, Any]]] | None = None
        self._next_key = 0
        self._tokens = 0
        self._pace, self._measured = _FIRST_GUESS / most, False  # seconds of a step for each token in the batch

    @property
    def tokens(self) -> int:
        """What is in the running batch."""
        return self._tokens

    def room(self, seconds: float) -> int:
        """What has become free, as soon as it is worth the while; less than a full batch where steps must be short."""
        if self._sliced is not None:
            return 0
        used = int(self._decoder.tokens)
        most = min(self._most, int(seconds / min(self._pace, _SLOWEST / self._most)))
        return most - used if used <= _REFILL * most else 0

    @property
    def waits(self) -> float:
        """As the decoder says."""
        return 0.0 if self._sliced is not None else self._decoder.waits

    @property
    def spare(self) -> int:
        """Half of a full batch, whatever is in it."""
        if self._sliced is not None:
            return 0
        return int(_SPARE * self._most - self._decoder.tokens)

    def admit(self, entries: Sequence[Entry]) -> None:
        """Let entries into the batch."""
        keyed = {self._next_key + place: entry for place, entry in enumerate(entries)}
        self._next_key += len(entries)
        self._running |= keyed
        self._tokens += sum(entry.tokens for entry in entries)
        self._entering += [(key, entry.item) for key, entry in keyed.items()]

    def turn(self) -> list[Answer]:
        """One step, or a slice of it."""
        if not self._running:
            return []
        finished = self._advance()
        ended = {key for key, _ in finished}
        self._leaving = [key for key in self._leaving if key not in ended]
        self._let_go()
        return [Answer(self._leave(key), value) for key, value in finished if key in self._running]

    def _advance(self) -> list[tuple[int, Any]]:
        """What is finished with a step; nothing, with ``_sliced`` set, as long as it goes on."""
        if self._sliced is None:
            if all(entry.tokens <= self._most for entry in self._running.values()):
                return self._step()
            self._sliced = Sliced(self._step)
        if not self._sliced.advance(SLICE):
            return []
        sliced, self._sliced = self._sliced, None
        return sliced.result()

    def _step(self) -> list[tuple[int, Any]]:
        entering, self._entering = self._entering, []
        if entering:
            self._decoder.admit(entering)
        tokens, begin = self._decoder.tokens, time.monotonic()
        finished = self._decoder.step()
        if tokens >= self._most / _TIMED and self._sliced is None:  # smaller batches, and pauses, say nothing
            pace = (time.monotonic() - begin) / tokens
            self._pace += (0.1 if self._measured else 1.0) * (pace - self._pace)
            self._measured = True
        return finished

    def cancel(self, entries: Sequence[Entry]) -> None:
        """Free the rows of entries."""
        gone = set(map(id, entries))
        keys = [key for key, entry in self._running.items() if id(entry) in gone]
        for key in keys:
            self._leave(key)
        if self._sliced is not None and not self._running:
            self._sliced.give_up(wait=True)
            self._sliced = None
        unknown = {key for key, _ in self._entering}.intersection(keys)
        self._entering = [(key, item) for key, item in self._entering if key not in unknown]
        self._leaving += [key for key in keys if key not in unknown]
        self._let_go()

    def _let_go(self) -> None:
        """Free the rows of what was cancelled, unless a step goes on."""
        if self._leaving and self._sliced is None:
            leaving, self._leaving = self._leaving, []
            self._decoder.cancel(leaving)

    def _leave(self, key: int) -> Entry:
        entry = self._running.pop(key)
        self._tokens -= entry.tokens
        return entry
