"""From the steps of a running search back to whole hypotheses.

Each step leaves a ``Moment``: the words it took, and what they continue. When a sentence is done its
finished hypotheses are followed back to their beginning, all together, step by step. Moments before
the beginning of the oldest sentence still searched are forgotten, so that a search may run for ever.

Shapes: N rows of a step, X words it kept, F finished hypotheses, T steps, S source positions.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from nmt_core.inference.hypothesis import Matrix

Integers = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


class Moment(NamedTuple):
    """One step: for each word kept the row it continues; for each row its word in the step before (-1: none)."""

    words_X: Integers
    log_probs_X: Floats
    rows_X: Integers
    origins_N: Integers
    attention_NS: Matrix | None


class End(NamedTuple):
    """Where a finished hypothesis ends: the step, and its ``</s>`` among the words that the step kept."""

    time: int
    entry: int


class Path(NamedTuple):
    """A hypothesis' words (``</s>`` last), their log-probabilities, and where it looked (all source positions)."""

    words: list[int]
    log_probs: list[float]
    attention: Matrix | None


class History:
    """The moments of a search; ``time`` counts its steps."""

    def __init__(self) -> None:
        self.time = 0
        self._moments: deque[Moment] = deque()

    def __len__(self) -> int:
        """The number of steps remembered."""
        return len(self._moments)

    def add(self, moment: Moment) -> None:
        """A further step."""
        self._moments.append(moment)
        self.time += 1

    def forget(self, before: int) -> None:
        """Drop the steps before a time."""
        while self._moments and self.time - len(self._moments) < before:
            self._moments.popleft()

    def trace(self, ends: Sequence[End]) -> list[Path]:
        """Walk back from all ends at once."""
        if not ends:
            return []
        moments = list(self._moments)
        first = self.time - len(moments)
        last_F, entries_F = np.array(ends, dtype=np.int64).T
        last_F, entries_F = last_F - first, entries_F.copy()
        words_FT = np.zeros((len(ends), len(moments)), dtype=np.int64)
        log_probs_FT, rows_FT = np.zeros(words_FT.shape), np.zeros_like(words_FT)
        begins_F = last_F.copy()
        for time in range(int(last_F.max()), -1, -1):
            there = np.flatnonzero((last_F >= time) & (entries_F >= 0))
            if not len(there):
                break
            moment, entries = moments[time], entries_F[there]
            rows = moment.rows_X[entries]
            words_FT[there, time], log_probs_FT[there, time] = moment.words_X[entries], moment.log_probs_X[entries]
            rows_FT[there, time], begins_F[there] = rows, time
            entries_F[there] = moment.origins_N[rows]
        return [
            Path(
                words_FT[number, begin : last + 1].tolist(),
                log_probs_FT[number, begin : last + 1].tolist(),
                _looked(moments[begin : last + 1], rows_FT[number, begin : last + 1]),
            )
            for number, (begin, last) in enumerate(zip(begins_F.tolist(), last_F.tolist(), strict=True))
        ]


def _looked(moments: Sequence[Moment], rows_T: Integers) -> Matrix | None:
    """Where one hypothesis looked at each of its steps; rows of the width of the widest."""
    rows = [
        moment.attention_NS[row] for moment, row in zip(moments, rows_T, strict=True) if moment.attention_NS is not None
    ]
    if not rows:
        return None
    width = max(map(len, rows))
    return np.stack([np.pad(row, (0, width - len(row))) for row in rows])
