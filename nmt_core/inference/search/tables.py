"""The two states of a running search that are kept on the host: its sentences, and its live rows.

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
Objects = npt.NDArray[np.object_]
_MARGIN = 1e-4  # of a score: more than rounding may be wrong


class Sentences(NamedTuple):
    """The sentences searched.

    Slots of memory, source positions, rules (the most and the fewest words, no unknown words, exponent and offset of
    the length normalisation), the beam and how many of its places are not finished, the step of the first word,
    the score that a hypothesis must beat to be one of the n best, and the ``SearchedSentence``s.
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
    searched_A: Objects

    @classmethod
    def of(cls, rows: Sequence[Sequence[Any]]) -> Sentences:
        """A table with the given lines."""
        columns = [list(column) for column in zip(*rows, strict=True)] or [[] for _ in cls._fields]
        types: dict[str, type[np.generic]] = {
            "forbid_A": np.bool_,
            "exponents_A": np.float64,
            "offsets_A": np.float64,
            "prune_thresholds_A": np.float64,
            "searched_A": np.object_,
        }
        return Sentences._make(
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

    def take(self, chosen: Integers | Flags) -> Sentences:
        """Some of the sentences."""
        return Sentences._make(column[chosen] for column in self._columns())

    def join(self, other: Sentences) -> Sentences:
        """These sentences, and behind them the others."""
        return Sentences._make(map(np.concatenate, zip(self._columns(), other._columns(), strict=True)))

    def _columns(self) -> list[Any]:
        return list(self)


class LiveRows(NamedTuple):
    """The live hypotheses: their sentences' slots, where their states are, last words, totals, places in the last step.

    ``progress_N`` is how far they have come with the rules of their sentence, or with its guide; None without these.
    """

    slots_N: Integers
    parents_N: Integers
    previous_N: Integers
    totals_N: Floats
    origins_N: Integers
    progress_N: Objects

    @staticmethod
    def beginning(slots_N: Integers, parents_N: Integers, word: int, progress: Sequence[Any]) -> LiveRows:
        """Hypotheses without words; ``word`` stands for the one before the first."""
        rows = len(slots_N)
        return LiveRows(slots_N, parents_N, np.full(rows, word), np.zeros(rows), np.full(rows, -1), objects(progress))

    def take(self, chosen: Integers | Flags) -> LiveRows:
        """Some of the rows."""
        return LiveRows._make(column[chosen] for column in self._columns())

    def join(self, other: LiveRows) -> LiveRows:
        """These rows, and behind them the others."""
        return LiveRows._make(map(np.concatenate, zip(self._columns(), other._columns(), strict=True)))

    def _columns(self) -> list[Any]:
        return list(self)


def objects(values: Sequence[Any]) -> Objects:
    """A column of any values; NumPy takes tuples apart where it makes an array of them."""
    column = np.empty(len(values), dtype=np.object_)
    for number, value in enumerate(values):
        column[number] = value
    return column
