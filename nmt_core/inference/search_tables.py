"""The numbers of a running search that are kept on the host: of its sentences, and of its rows.

Columns stand side by side and are changed for all sentences, or rows, at once.
Shapes: A sentences, N rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

Integers = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]


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
