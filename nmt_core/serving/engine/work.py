"""What an engine computes: batches that are done at once, and searches that advance step by step.

Free of gRPC and of torch.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any, NamedTuple, Protocol

from nmt_core.serving.engine.slices import working_time

_RATE = 20_000.0  # tokens a second, until a batch was measured
_NEW = 0.2  # the weight of the newest batch among the last ones
_VARIED = 0.1  # standard deviation over mean of the sizes: with less, they do not tell the two parts apart
_MOST_START = 0.75  # of a batch's time: so that one wrong estimate does not make the next batch very large

LARGE = 400
"""Tokens of an item above which it alone may take seconds."""

_REFILL = 0.5  # of a full batch: below, waiting items are let in; a few at a time cost more than rows that are free
_OVERCOMMIT = 1.5  # full batches: what sentences of clients that have none running may fill
_TIMED = 32  # the part of a full batch from which its step is timed: half of the smallest that is ever filled up
_FIRST_GUESS = 0.25  # seconds of a step with a full batch, until one was measured
_SLOWEST = 0.16  # the same, however slow: in small batches each sentence takes longer


class Item(NamedTuple):
    """What is computed for a caller, and its tokens."""

    value: Any
    tokens: int


class Unfinished(Item):
    """A first result. A second job makes the answer of it, with first results of other callers."""

    __slots__ = ()


class Entry(NamedTuple):
    """An item that was admitted: its key in the work, and its number in its job."""

    key: int
    job: Any
    number: int
    item: Item


class BatchSpeed:
    """A line through the sizes and times of batches, by least squares with weights that fall exponentially.

    The time of a batch is ``start + each * tokens``: a search or a scorer takes as many steps for one sentence as for
    twenty, and a step has costs that do not depend on its rows.
    """

    def __init__(self) -> None:
        self._start, self._each = 0.0, 1 / _RATE
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
        """How long a batch takes; the first one, whose speed was not measured, may take any time."""
        return self._start + self._each * tokens if self._tokens else math.inf


class BatchWork:
    """``run(items)`` answers every item, in order. An iteration is one call, sized by how fast the last ones were.

    Where tokens do not tell how long items take, ``choose(items)`` gives the indices of those that are run together:
    one at least. The others follow in the next iterations.
    """

    waits_for_more = True  # a batch that is not full may wait a moment for more
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
    ) -> None:
        self.kind, self._run, self._choose, self._most = kind, run, choose, most
        self._speed = BatchSpeed()
        self._entries: list[Entry] = []

    def room(self, seconds: float) -> int:
        """Tokens that may enter now, for a batch of that time: some are left of earlier ones."""
        return min(self._most, self._speed.tokens_in(seconds)) - sum(entry.item.tokens for entry in self._entries)

    def expected(self, running: Iterable[Entry]) -> float:
        """Seconds of the next iteration, by the speed of the last ones; one large item may take any time."""
        tokens = [entry.item.tokens for entry in running]
        return math.inf if max(tokens, default=0) > LARGE else self._speed.seconds_for(sum(tokens))

    def iterate(self, entering: Sequence[Entry]) -> list[tuple[int, Any]]:
        """Take entries in and run a batch: the keys of those that are done, and their answers.

        An exception means that all that was taken in is lost.
        """
        self._entries += entering
        entries = self._entries
        if self._choose is not None:
            entries = [entries[index] for index in self._choose([entry.item.value for entry in entries])]
        begin = working_time()
        values = self._run([entry.item.value for entry in entries])
        assert len(values) == len(entries), "a run must answer every item"
        if tokens := sum(entry.item.tokens for entry in entries):
            self._speed.note(tokens, working_time() - begin)
        keys = [entry.key for entry in entries]
        self.cancel(keys)
        return list(zip(keys, values, strict=True))

    def cancel(self, keys: Iterable[int]) -> None:
        """Drop entries."""
        gone = set(keys)
        self._entries = [entry for entry in self._entries if entry.key not in gone]


class StepDecoder(Protocol):
    """A search whose batch changes from step to step. Keys are numbers that the caller chooses."""

    def admit(self, requests: Sequence[tuple[int, Any]]) -> None:
        """Take in items, each under a key."""
        ...

    def step(self) -> list[tuple[int, Any]]:
        """Advance all by one step; the keys that are finished, and their answers."""
        ...

    def cancel(self, keys: Sequence[int]) -> None:
        """Drop items, of which the decoder need not know all."""
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

    ``most`` is the size of a full batch. A step with an item larger than that may take any time. ``second`` is the key
    of the second jobs that make answers of ``Unfinished`` ones.
    """

    waits_for_more = False

    def __init__(self, kind: str, decoder: StepDecoder, *, most: int, second: Hashable = None) -> None:
        self.kind, self._decoder, self._most, self.second = kind, decoder, most, second
        self._pace, self._measured = _FIRST_GUESS / most, False  # seconds of a step for each token in the batch

    @property
    def blocked_for(self) -> float:
        """Seconds for which a step would find nothing to compute, but wait for something else; 0 if it would."""
        return self._decoder.waits

    @property
    def overcommit(self) -> int:
        """Tokens beyond the room, for clients of which nothing is running: half of a full batch, whatever is in it."""
        return int(_OVERCOMMIT * self._most - self._decoder.tokens)

    def room(self, seconds: float) -> int:
        """What has become free, as soon as it is worth the while; less than a full batch where steps must be short."""
        used = int(self._decoder.tokens)
        most = min(self._most, int(seconds / min(self._pace, _SLOWEST / self._most)))
        return most - used if used <= _REFILL * most else 0

    def expected(self, running: Iterable[Entry]) -> float:
        """Steps of ordinary items are short by the room that there was for them."""
        return math.inf if any(entry.item.tokens > self._most for entry in running) else 0.0

    def iterate(self, entering: Sequence[Entry]) -> list[tuple[int, Any]]:
        """Take entries in and do one step, as ``BatchWork.iterate``."""
        if entering:
            self._decoder.admit([(entry.key, entry.item.value) for entry in entering])
        tokens, begin = self._decoder.tokens, working_time()
        finished = self._decoder.step()
        if tokens >= self._most / _TIMED:  # smaller batches say nothing
            pace = (working_time() - begin) / tokens
            self._pace += (0.1 if self._measured else 1.0) * (pace - self._pace)
            self._measured = True
        return finished

    def cancel(self, keys: Iterable[int]) -> None:
        """Drop entries. A step that was under way is not resumed."""
        self._decoder.cancel(sorted(keys))


Work = BatchWork | StepWork
"""Equal work of many callers on one device. All methods are called by the device's thread, or in slices."""
