"""From the steps of a running search back to whole hypotheses.

Each step leaves a ``BeamStep``: the words it took, and what they continue. When a sentence is done its
finished hypotheses are followed back to their beginning, all together, step by step. Steps before
the beginning of the oldest sentence still searched are forgotten, so that a search may run for ever.

Shapes: N rows of a step, X words it took, F finished hypotheses, T steps.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Integers = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


class BeamStep(NamedTuple):
    """One step: for each word taken the row it continues; for each row its word in the step before (-1: none)."""

    words_X: Integers
    log_probs_X: Floats
    rows_X: Integers
    origins_N: Integers


class End(NamedTuple):
    """Where a finished hypothesis ends: the step, and its ``</s>`` among the words that the step took."""

    time: int
    entry: int


class Path(NamedTuple):
    """A hypothesis' words (``</s>`` last), their log-probabilities, and the row that each continued in its step."""

    words: list[int]
    log_probs: list[float]
    rows: list[int]


class History:
    """The steps of a search; ``time`` counts them."""

    def __init__(self) -> None:
        self.time = 0
        self._steps: deque[BeamStep] = deque()

    def __len__(self) -> int:
        """The number of steps remembered."""
        return len(self._steps)

    def add(self, step: BeamStep) -> None:
        """A further step."""
        self._steps.append(step)
        self.time += 1

    def forget(self, before: int) -> None:
        """Drop the steps before a time."""
        while self._steps and self.time - len(self._steps) < before:
            self._steps.popleft()

    def trace(self, ends: Sequence[End]) -> list[Path]:
        """Walk back from all ends at once."""
        if not ends:
            return []
        steps = list(self._steps)
        first = self.time - len(steps)
        last_F, entries_F = np.array(ends, dtype=np.int64).T
        last_F, entries_F = last_F - first, entries_F.copy()
        words_FT = np.zeros((len(ends), len(steps)), dtype=np.int64)
        log_probs_FT, rows_FT = np.zeros(words_FT.shape), np.zeros_like(words_FT)
        begins_F = last_F.copy()
        for time in range(int(last_F.max()), -1, -1):
            there = np.flatnonzero((last_F >= time) & (entries_F >= 0))
            if not len(there):  # ends may lie behind those of others, with steps of neither between
                continue
            step, entries = steps[time], entries_F[there]
            rows = step.rows_X[entries]
            words_FT[there, time], log_probs_FT[there, time] = step.words_X[entries], step.log_probs_X[entries]
            rows_FT[there, time], begins_F[there] = rows, time
            entries_F[there] = step.origins_N[rows]
        columns = (words_FT, log_probs_FT, rows_FT)
        return [
            Path(*(values_FT[number, begin : last + 1].tolist() for values_FT in columns))
            for number, (begin, last) in enumerate(zip(begins_F.tolist(), last_F.tolist(), strict=True))
        ]
