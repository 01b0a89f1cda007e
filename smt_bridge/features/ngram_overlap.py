"""How many n-grams every two sequences of a list share, clipped as BLEU and chrF clip them.

The k-th occurrence of an n-gram in a sequence is one *item*; two sequences share min(a, b) occurrences
exactly when they share that many items. So the shared n-grams of all pairs are one product of a binary
matrix (sequences by items) with itself.

Shapes: N sequences, P symbols of all sequences one behind the other, I items.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

_CELLS = 1 << 23  # of the binary matrix at a time


def shared_ngrams(symbols_P: Ints, lengths_N: Ints, *, orders: int) -> Iterator[Floats]:
    """Yield, for n = 1, 2, ..., ``orders``, the shared n-grams (N, N) of every two sequences."""
    row_P = np.repeat(np.arange(len(lengths_N)), lengths_N)
    end_P = np.repeat(np.cumsum(lengths_N), lengths_N)
    symbols = np.unique(symbols_P, return_inverse=True)[1].reshape(-1).astype(np.int64)
    alphabet = int(symbols.max(initial=0)) + 1
    starts, grams = np.arange(len(symbols)), symbols
    for order in range(1, orders + 1):
        if order > 1:
            inside = starts + order <= end_P[starts]
            starts = starts[inside]
            grams = grams[inside] * alphabet + symbols[starts + order - 1]
        grams, rows, items = _items(grams, row_P[starts], len(lengths_N))
        yield _product(rows, items, len(lengths_N))


def _items(grams: Ints, rows: Ints, sequences: int) -> tuple[Ints, Ints, Ints]:
    """Number the n-grams from 0 in place; and, in the order of items, the row and the number of each item."""
    if not len(grams):
        return grams, rows, grams
    cells = grams * sequences + rows
    order = np.argsort(cells)
    cells, sorted_rows, sorted_grams = cells[order], rows[order], grams[order]
    place = np.arange(len(order))
    new_gram = np.concatenate(([True], sorted_grams[1:] != sorted_grams[:-1]))
    new_cell = np.concatenate(([True], cells[1:] != cells[:-1]))
    occurrence = place - np.maximum.accumulate(np.where(new_cell, place, 0))
    numbers = np.cumsum(new_gram) - 1
    most = np.maximum.reduceat(occurrence, np.flatnonzero(new_gram)) + 1
    items = (np.cumsum(most) - most)[numbers] + occurrence
    numbered = np.empty_like(grams)
    numbered[order] = numbers
    return numbered, sorted_rows, items


def _product(rows: Ints, items: Ints, sequences: int) -> Floats:
    """B Bᵀ for the binary B (N, I) with ones at (rows, items), a block of items at a time."""
    shared = np.zeros((sequences, sequences))
    holders = np.bincount(items) if len(items) else np.zeros(0, dtype=np.int64)
    common = holders[items] > 1  # an item of one sequence counts on the diagonal only
    np.add.at(shared, (rows[~common], rows[~common]), 1.0)
    columns = (np.cumsum(holders > 1) - 1)[items[common]]
    rows = rows[common]
    width = max(1, _CELLS // sequences)
    for begin in range(0, int(columns.max(initial=-1)) + 1, width):
        chosen = (columns >= begin) & (columns < begin + width)
        block = np.zeros((sequences, min(width, int(columns.max()) + 1 - begin)), dtype=np.float32)
        block[rows[chosen], columns[chosen] - begin] = 1.0
        shared += block @ block.T
    return shared
