"""What an engine computes: batches that are done at once, and searches that advance step by step.

Free of gRPC and of torch. All methods of a ``Work`` are called by the device's thread.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Hashable, Sequence
from typing import Any, Protocol

from nmt_core.serving.engine.jobs import Answer, Entry

_NEW = 0.2  # the weight of the newest batch among the last ones
_VARIED = 0.1  # standard deviation over mean of the sizes: with less, they do not tell the two parts apart
_UNKNOWN = 20  # times the seconds by the given rate that a first batch may take
_MOST_START = 0.75  # of a batch's time: so that one wrong estimate does not make the next batch very large

LARGE = 400
"""Tokens of an item above which it alone may take seconds."""

_FAILURES = 20  # of parts of one batch, until the rest is given up
_REFILL = 0.5  # of a full batch: below, waiting items are let in; a few at a time cost more than rows that are free
_OVERCOMMIT = 1.5  # full batches: what sentences of clients that have none running may fill
_TIMED = 32  # the part of a full batch from which its step is timed: half of the smallest that is ever filled up
_FIRST_GUESS = 0.25  # seconds of a step with a full batch, until one was measured
_SLOWEST = 0.16  # the same, however slow: in small batches each sentence takes longer


class Work(Protocol):
    """Equal work of many callers on one device."""

    kind: str
    waits_for_more: bool
    """A batch that is not full may wait a moment for more."""
    second: Hashable
    """The key of the second jobs that make answers of ``Unfinished`` ones."""

    @property
    def blocked_for(self) -> float:
        """Seconds for which an iteration would find nothing to compute, but wait for something else; 0 if it would."""
        ...

    def room(self, seconds: float) -> int:
        """Tokens that may be admitted now, for an iteration to take about ``seconds``."""
        ...

    @property
    def overcommit(self) -> int:
        """Tokens beyond the room, for clients of which nothing is running."""
        ...

    @property
    def tokens(self) -> int:
        """What is admitted and not yet answered."""
        ...

    def admit(self, entries: Sequence[Entry]) -> None:
        """Take entries in; the work may be made to take more than it has room for."""
        ...

    def prepare(self) -> float:
        """Choose the entries of the next iteration; its expected seconds, infinite where one item may take any time."""
        ...

    @property
    def prepared(self) -> Sequence[Entry]:
        """The entries of the next iteration, or of the present one."""
        ...

    def iterate(self) -> list[Answer]:
        """Run the batch, or one step. An exception means that all that was admitted is lost."""
        ...

    def took(self, seconds: float) -> None:
        """The iteration that ended took so long."""
        ...

    def cancel(self, entries: Sequence[Entry]) -> None:
        """Drop entries. An iteration that was under way is not resumed."""
        ...


class BatchSpeed:
    """A line through the sizes and times of batches, by least squares with weights that fall exponentially.

    The time of a batch is ``start + each * tokens``: a search or a scorer takes as many steps for one sentence as for
    twenty, and a step has costs that do not depend on its rows. ``rate`` (tokens a second) is believed until the first
    batch is done.
    """

    def __init__(self, rate: float) -> None:
        self._start, self._each = 0.0, 1 / rate
        self._tokens = self._seconds = 0.0  # means
        self._variance = self._covariance = 0.0  # of tokens; of tokens and seconds

    def note(self, tokens: int, seconds: float) -> None:
        """A batch of so many tokens took so long."""
        seconds = max(seconds, 1e-4)
        new = _NEW if self._tokens else 1.0
        more_tokens, more_seconds = tokens - self._tokens, seconds - self._seconds
        self._tokens += new * more_tokens
        self._seconds += new * more_seconds
        self._variance = (1 - new) * (self._variance + new * more_tokens**2)
        self._covariance = (1 - new) * (self._covariance + new * more_tokens * more_seconds)
        if self._variance > (_VARIED * self._tokens) ** 2:
            self._start = self._seconds - self._covariance / self._variance * self._tokens
        self._start = min(max(self._start, 0.0), _MOST_START * self._seconds)
        self._each = (self._seconds - self._start) / self._tokens

    def tokens_in(self, seconds: float) -> int:
        """Of a batch that takes so long, or twice as long as the start, which no batch can do without."""
        return int(max(seconds - self._start, self._start) / self._each)

    def seconds_for(self, tokens: int) -> float:
        """How long a batch takes; of the first one, whose speed was not measured, how long it may take."""
        return self._start + self._each * tokens * (1 if self._tokens else _UNKNOWN)


class BatchWork:
    """``run(items)`` answers every item, in order. An iteration is one call, sized by how fast the last ones were.

    Where tokens do not tell how long items take, ``choose(items)`` gives the indices of those that are run together:
    one at least. The others follow in the next iterations. A call that fails is tried in halves, so that an item that
    cannot be done (or a batch that does not fit in memory) takes no other with it.
    """

    waits_for_more = True
    blocked_for = 0.0
    overcommit = 0
    second: Hashable = None

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
        self.prepared: list[Entry] = []
        self._size = 0  # tokens of what was prepared
        self._failures = 0

    @property
    def tokens(self) -> int:
        """What this iteration and the next ones compute."""
        return sum(entry.tokens for entry in (*self.prepared, *self._entries))

    def room(self, seconds: float) -> int:
        """As much as is done in that time, or in twice the minimum; nothing while a batch is ready."""
        return 0 if self._entries or self.prepared else max(1, min(self._most, self._speed.tokens_in(seconds)))

    def admit(self, entries: Sequence[Entry]) -> None:
        """Make them the next batch, or part of it."""
        self._entries += entries

    def prepare(self) -> float:
        """Choose what the next call is for; the others stay."""
        entries, self._entries = self._entries, []
        if self._choose is not None and entries:
            chosen = set(self._choose([entry.item for entry in entries]))
            self._entries = [entry for index, entry in enumerate(entries) if index not in chosen]
            entries = [entry for index, entry in enumerate(entries) if index in chosen]
        self.prepared = entries
        self._size = sum(entry.tokens for entry in entries)
        is_large = any(entry.tokens > LARGE for entry in entries)
        return math.inf if is_large else self._speed.seconds_for(self._size)

    def iterate(self) -> list[Answer]:
        """Run what was prepared."""
        self._failures = 0
        answers = self._answers(list(self.prepared))
        self.prepared = []
        return answers

    def took(self, seconds: float) -> None:
        """Learn from the iteration's time, unless parts of it failed."""
        if self._size and not self._failures:
            self._speed.note(self._size, seconds)

    def cancel(self, entries: Sequence[Entry]) -> None:
        """Take them out of the batches to come."""
        gone = set(map(id, entries))
        self._entries = [entry for entry in (*self.prepared, *self._entries) if id(entry) not in gone]
        self.prepared = []

    def _answers(self, entries: Sequence[Entry]) -> list[Answer]:
        if not entries:
            return []
        try:
            values = self._run([entry.item for entry in entries])
            assert len(values) == len(entries), "a run must answer every item"
            return list(map(Answer, entries, values))
        except Exception as error:  # whatever a model raises belongs to the callers of these items
            self._failures += 1
            if len(entries) == 1 or self._failures > _FAILURES:
                return [Answer(entry, error) for entry in entries]
        half = len(entries) // 2
        return self._answers(entries[:half]) + self._answers(entries[half:])


class StepDecoder(Protocol):
    """A search whose batch changes from step to step. Keys are numbers that the caller chooses."""

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
        """The size of the batch now; an item that is nearly finished may count less than when it entered."""
        ...

    @property
    def waits(self) -> float:
        """Seconds after which to look again, where a step would find nothing to do now; 0 where it would."""
        ...


class StepWork:
    """Continuous batching: at every step finished and cancelled items leave the decoder's batch, and others enter.

    ``most`` is the size of a full batch. A step with an item larger than that may take any time.
    """

    waits_for_more = False

    def __init__(self, kind: str, decoder: StepDecoder, *, most: int, second: Hashable = None) -> None:
        self.kind, self._decoder, self._most, self.second = kind, decoder, most, second
        self._running: dict[int, Entry] = {}
        self._entering: list[tuple[int, Any]] = []
        self._next_key = 0
        self._tokens = 0
        self._is_long = False
        self._pace, self._measured = _FIRST_GUESS / most, False  # seconds of a step for each token in the batch

    @property
    def tokens(self) -> int:
        """What is in the running batch."""
        return self._tokens

    @property
    def blocked_for(self) -> float:
        """As the decoder says."""
        return self._decoder.waits

    @property
    def prepared(self) -> Sequence[Entry]:
        """All of the batch."""
        return list(self._running.values())

    @property
    def overcommit(self) -> int:
        """Half of a full batch, whatever is in it."""
        return int(_OVERCOMMIT * self._most - self._decoder.tokens)

    def room(self, seconds: float) -> int:
        """What has become free, as soon as it is worth the while; less than a full batch where steps must be short."""
        used = int(self._decoder.tokens)
        most = min(self._most, int(seconds / min(self._pace, _SLOWEST / self._most)))
        return most - used if used <= _REFILL * most else 0

    def admit(self, entries: Sequence[Entry]) -> None:
        """Let entries into the batch, at its next step."""
        for key, entry in enumerate(entries, self._next_key):
            self._running[key] = entry
            self._entering.append((key, entry.item))
            self._tokens += entry.tokens
        self._next_key += len(entries)

    def prepare(self) -> float:
        """Steps of ordinary items are short by the room that there was for them."""
        self._is_long = any(entry.tokens > self._most for entry in self._running.values())
        return math.inf if self._is_long else 0.0

    def iterate(self) -> list[Answer]:
        """One step."""
        if not self._running:
            return []
        entering, self._entering = self._entering, []
        if entering:
            self._decoder.admit(entering)
        tokens, begin = self._decoder.tokens, time.monotonic()
        finished = self._decoder.step()
        if tokens >= self._most / _TIMED and not self._is_long:  # smaller batches, and slices, say nothing
            pace = (time.monotonic() - begin) / tokens
            self._pace += (0.1 if self._measured else 1.0) * (pace - self._pace)
            self._measured = True
        return [Answer(self._leave(key), value) for key, value in finished]

    def took(self, seconds: float) -> None:
        """Steps are timed without what enters."""

    def cancel(self, entries: Sequence[Entry]) -> None:
        """Free the rows of entries."""
        gone = set(map(id, entries))
        keys = {key for key, entry in self._running.items() if id(entry) in gone}
        for key in keys:
            self._leave(key)
        unknown = {key for key, _ in self._entering}.intersection(keys)
        self._entering = [(key, item) for key, item in self._entering if key not in unknown]
        self._decoder.cancel(sorted(keys - unknown))

    def _leave(self, key: int) -> Entry:
        entry = self._running.pop(key)
        self._tokens -= entry.tokens
        return entry
