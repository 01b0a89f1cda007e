"""The numbers of a running search that are kept on the host: of its sentences, and of its rows.

Columns stand side by side and are changed for all sentences, or rows, at once.
Shapes: A sentences, N rows, C candidates of a sentence.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from nmt_core.inference.search.config import USUAL_ROWS

Integers = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]
_MARGIN = 1e-4  # of a score: more than rounding may be wrong


class SentenceTable(NamedTuple):
    """The sentences searched.

    Slots, source positions, rules (the most and the fewest words, no unknown words, exponent and offset of the
    length normalisation), the beam and how many of its places are not finished, the step of the first word, and
    the score that a hypothesis must beat to be one of the n best.
    """

    slots_A: Integers
    widths_A: Integers
    limits_A: Integers
    least_A: Integers
    forbid_A: Flags
    exponents_A: Floats
    offsets_A: Floats
    beams_A: Integers
    places_A: Integers
    begun_A: Integers
    prune_thresholds_A: Floats

    @classmethod
    def of(cls, rows: Sequence[Sequence[Any]]) -> SentenceTable:
        """A table with the given lines."""
        columns = [list(column) for column in zip(*rows, strict=True)] or [[] for _ in cls._fields]
        types = {
            "forbid_A": np.bool_,
            "exponents_A": np.float64,
            "offsets_A": np.float64,
            "prune_thresholds_A": np.float64,
        }
        return SentenceTable._make(
            np.array(column, dtype=types.get(name, np.int64)) for name, column in zip(cls._fields, columns, strict=True)
        )

    @property
    def tokens(self) -> float:
        """Source positions of all sentences, each counted by the part of its beam that still has places.

        One whose beam is wider than ``USUAL_ROWS`` counts as many times as it is wider: rows of logits take memory.
        """
        return float((self.widths_A * self.places_A / np.minimum(self.beams_A, USUAL_ROWS)).sum())

    def decided(self, live_AC: Flags, totals_AC: Floats) -> Flags:
        """Whether sentences have no live hypothesis, or none that could still come among the n best.

        ``live_AC`` are the hypotheses among the candidates of each, with their totals. Log-probabilities only fall and
        coverage only costs, so that no live hypothesis will have a better score than its present total at the
        greatest length.
        """
        best_A = np.where(live_AC, totals_AC, -np.inf).max(axis=1)
        longest_A = (self.limits_A + 1.0 + self.offsets_A) / (self.offsets_A + 1.0)
        bound_A = best_A / longest_A**self.exponents_A
        decided_A: Flags = ~live_AC.any(axis=1) | (bound_A * (1 - _MARGIN) < self.prune_thresholds_A)
        return decided_A

    def take(self, chosen: Integers | Flags) -> SentenceTable:
        """Some of the sentences."""
        return SentenceTable._make(column[chosen] for column in self._columns())

    def join(self, other: SentenceTable) -> SentenceTable:
        """These sentences, and behind them the others."""
        return SentenceTable._make(map(np.concatenate, zip(self._columns(), other._columns(), strict=True)))

    def _columns(self) -> list[Any]:
        return list(self)


class RowTable(NamedTuple):
    """The rows: their sentences' slots, where their states are, their last words, totals, places in the last step."""

    slots_N: Integers
    parents_N: Integers
    previous_N: Integers
    totals_N: Floats
    origins_N: Integers

    @staticmethod
    def beginning(slots_N: Integers, parents_N: Integers, word: int) -> RowTable:
        """Hypotheses without words; ``word`` stands for the one before the first."""
        origins_N = np.full(len(slots_N), -1)
        return RowTable(slots_N, parents_N, np.full(len(slots_N), word), np.zeros(len(slots_N)), origins_N)

    def take(self, chosen: Integers | Flags) -> RowTable:
        """Some of the rows."""
        return RowTable._make(column[chosen] for column in self._columns())

    def join(self, other: RowTable) -> RowTable:
        """These rows, and behind them the others."""
        return RowTable._make(map(np.concatenate, zip(self._columns(), other._columns(), strict=True)))

    def _columns(self) -> list[Any]:
        return list(self)
