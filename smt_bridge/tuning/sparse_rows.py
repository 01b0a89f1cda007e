"""Values of columns that few hypotheses have, such as Moses' sparse features, which may be tens of thousands.

Only what is not 0 is kept, as (row, column, value) in the order of the rows. Sums go through ``numpy.bincount``,
which adds one number after the other, so that their order is that of the values.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.intp]


class SparseRows(NamedTuple):
    """(N,) each: the row (a hypothesis, counted through all lists with their padding), the column, the value."""

    rows: Integers
    columns: Integers
    values: Floats

    @property
    def is_empty(self) -> bool:
        """Whether all values are 0."""
        return len(self.rows) == 0

    def dot(self, weights: Floats, rows: int) -> Floats:
        """For every row (``rows``,) the sum of values times the weights (K,) of their columns."""
        return bincount(self.rows, self.values * weights[self.columns], rows)

    def transposed_dot(self, weights: Floats, columns: int) -> Floats:
        """For every column (``columns``,) the sum of values times the weights (R,) of their rows."""
        return bincount(self.columns, self.values * weights[self.rows], columns)

    def between(self, begin: int, end: int) -> SparseRows:
        """The rows from ``begin`` to before ``end``, counted from 0 again."""
        first, last = np.searchsorted(self.rows, (begin, end))
        return SparseRows(self.rows[first:last] - begin, self.columns[first:last], self.values[first:last])

    def of_lists(self, lists: Integers, length: int) -> SparseRows:
        """The rows of some of the lists, each of which has ``length`` rows."""
        parts = [self.between(place * length, (place + 1) * length) for place in lists.tolist()]
        if not parts:
            return NO_ROWS
        rows = [part.rows + place * length for place, part in enumerate(parts)]
        return SparseRows(
            np.concatenate(rows),
            np.concatenate([part.columns for part in parts]),
            np.concatenate([part.values for part in parts]),
        )

    def varying(self, sizes: Integers, length: int, columns: int) -> npt.NDArray[np.bool_]:
        """Which columns (``columns``,) differ within a list; ``sizes`` are the numbers of real rows of each list."""
        found = np.zeros(columns, dtype=np.bool_)
        if self.is_empty:
            return found
        key = (self.rows // length) * columns + self.columns
        order = np.argsort(key, kind="stable")
        key, values = key[order], self.values[order]
        starts = np.flatnonzero(np.append(True, key[1:] != key[:-1]))
        counts = np.diff(np.append(starts, len(key)))
        least, most = np.minimum.reduceat(values, starts), np.maximum.reduceat(values, starts)
        everywhere = counts == sizes[key[starts] // columns]
        found[key[starts[(least != most) | ~everywhere]] % columns] = True
        return found


def bincount(places: Integers, values: Floats, size: int) -> Floats:
    """The sums (``size``,) of the values of each place, added in their order."""
    sums: Floats = np.bincount(places, weights=values, minlength=size).astype(np.float64, copy=False)
    return sums


NO_ROWS = SparseRows(np.zeros(0, np.intp), np.zeros(0, np.intp), np.zeros(0))
