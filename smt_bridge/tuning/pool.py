"""N-best lists as arrays, which tuners work on, and the weights that these give back.

Shapes: D dense feature columns, K sparse ones, S sentences, L entries of the longest list. Shorter lists are
padded; padding has a feature score of minus infinity (``padding``) and can never win.

Of columns that few hypotheses have, such as Moses' sparse features, which may be tens of thousands, only what is not 0
is kept. Their sums go through ``numpy.bincount``, which adds one number after the other, in the order of the values.
"""

from __future__ import annotations

import itertools
import math
from array import array
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from nmt_core.base.messages import counted
from smt_bridge.errors import FormatError
from smt_bridge.metrics.bleu import Counts
from smt_bridge.metrics.metric import BLEU, Metric
from smt_bridge.nbest.entry import NbestEntry, NbestList
from smt_bridge.ordered_sum import ordered_sum

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.intp]
MAXIMAL_COLUMNS = 500  # of dense ones


class Tuned(NamedTuple):
    """Weights of all columns, L1 norm 1, and the metric's score that they reach on the pool."""

    weights: Floats
    score: float


def normalised(weights: Floats) -> Floats:
    """Weights with L1 norm 1, rounded to the six digits with which they are written."""
    norm = math.fsum(np.abs(weights).tolist())
    if norm == 0.0:
        return weights.copy()
    return np.array([float(f"{weight / norm:.6g}") for weight in weights.tolist()])


class Column(NamedTuple):
    """One number of a feature; ``component`` counts within the feature."""

    name: str
    component: int


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


class NbestPool(NamedTuple):
    """All hypotheses of a development set.

    ``columns`` are D dense ones and then K sparse ones. ``features`` (D, S, L) float64, ``statistics`` (S, L, C)
    counts of ``metric`` (ten for BLEU), ``padding`` (S, L) zero for entries and -inf for padding, ``sparse`` the
    values of the sparse columns, row s * L + l being entry l of sentence s. Weights are (D + K,).
    """

    columns: tuple[Column, ...]
    features: Floats
    statistics: Counts
    padding: Floats
    metric: Metric = BLEU
    sparse: SparseRows = NO_ROWS

    @property
    def entries(self) -> int:
        """Number of hypotheses, padding not counted."""
        return int(np.isfinite(self.padding).sum())

    @property
    def dense(self) -> int:
        """Number of dense columns, D."""
        return len(self.features)

    def scores(self, weights: Floats) -> Floats:
        """Model scores (S, L) under ``weights``; added column by column, so equal on every machine."""
        scores = self.padding.copy()
        for weight, column in zip(weights[: self.dense], self.features, strict=True):
            if weight != 0.0:
                scores += weight * column
        if not self.sparse.is_empty:
            scores += self.sparse.dot(weights[self.dense :], scores.size).reshape(scores.shape)
        return scores

    def best_counts(self, weights: Floats) -> Counts:
        """Counts (S, C) of the best entry of every sentence; of equals the earliest."""
        best = self.scores(weights).argmax(axis=1)
        counts: Counts = self.statistics[np.arange(len(best)), best]
        return counts

    def score(self, weights: Floats) -> float:
        """The metric's score of the hypotheses that these weights choose."""
        return float(self.metric.score(self.best_counts(weights).sum(axis=0)))

    def judged(self, weights: Floats) -> Tuned:
        """The weights, with L1 norm 1, and what they reach."""
        weights = normalised(weights)
        return Tuned(weights, self.score(weights))

    def of_sentences(self, sentences: npt.NDArray[np.intp]) -> NbestPool:
        """The pool of some of the sentences."""
        return self._replace(
            features=np.ascontiguousarray(self.features[:, sentences]),
            statistics=self.statistics[sentences],
            padding=self.padding[sentences],
            sparse=self.sparse.of_lists(sentences, self.padding.shape[1]),
        )

    def varying(self) -> npt.NDArray[np.bool_]:
        """Which columns (D + K,) differ between hypotheses of one sentence."""
        real = np.isfinite(self.padding)
        first = self.features[:, :, :1]
        dense = ((self.features != first) & real).any(axis=(1, 2))
        sizes, length = real.sum(axis=1), self.padding.shape[1]
        return np.concatenate([dense, self.sparse.varying(sizes, length, len(self.columns) - self.dense)])

    def spreads(self) -> Floats:
        """Standard deviation (D + K,) of each dense column within the lists, and 1 for sparse ones."""
        real = np.isfinite(self.padding)
        sizes = real.sum(axis=1)
        spreads = np.ones(len(self.columns))
        for column, values in enumerate(self.features):
            means = ordered_sum(np.where(real, values, 0.0)) / sizes
            differences = np.where(real, values - means[:, None], 0.0)
            unit = np.ldexp(1.0, np.frexp(np.abs(differences).max())[1])  # so that no square is too small for a float
            squares = ordered_sum(((differences / unit) ** 2).ravel())
            spreads[column] = unit * np.sqrt(squares / sizes.sum())
        return spreads


def pool_from_lists(lists: Iterable[tuple[NbestList, Counts]], *, path: str, metric: Metric = BLEU) -> NbestPool:
    """Build a pool of lists with the counts (N, C) of their entries for ``metric``. Lists of equal id become one.

    A name with ``_`` is a sparse feature and 0 where it is missing, as Moses has it. Up to 500 columns are dense, of
    more only those that every hypothesis has. Raises FormatError, with the line, when another feature is missing or
    has another number of values than before.
    """
    builder = _Builder(path)
    for group, counts in lists:
        builder.add(group, counts)
    return builder.build(metric)


class _Rows(NamedTuple):
    """The hypotheses of one sentence: how many values each has, their columns and the values; and the counts."""

    sizes: array[int]
    columns: array[int]
    values: array[float]
    counts: list[Counts]


class _Builder:
    """Takes lists and makes a pool of them; columns and sentences are in the order of their first appearance."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._sentences: dict[int, _Rows] = {}
        self._columns: list[Column] = []
        self._starts: dict[str, int] = {}
        self._arity: dict[str, int] = {}
        self._dense: frozenset[str] | None = None
        self._regular: tuple[str, ...] = ()
        self._regular_arities: list[int] = []
        self._regular_columns: list[int] = []

    def add(self, group: NbestList, counts: Counts) -> None:
        """Add a list and its counts."""
        rows = self._sentences.setdefault(group.sentence, _Rows(array("q"), array("q"), array("d"), []))
        rows.counts.append(counts)
        for entry in group.entries:
            features = entry.features
            names, arities = tuple(features), list(map(len, features.values()))
            if names != self._regular or arities != self._regular_arities:
                self._check(entry)
                self._regular, self._regular_arities = names, arities
                places = ((self._starts[name], self._arity[name]) for name in names)
                self._regular_columns = [start + place for start, arity in places for place in range(arity)]
            rows.columns.extend(self._regular_columns)
            rows.values.extend(itertools.chain.from_iterable(features.values()))
            rows.sizes.append(len(self._regular_columns))

    def _check(self, entry: NbestEntry) -> None:
        if self._dense is None:
            self._dense = frozenset(name for name in entry.features if "_" not in name)
        missing = self._dense - entry.features.keys()
        if missing:
            raise FormatError(
                self._path, f"feature {min(missing)} is missing here but stands in earlier lines", line=entry.line
            )
        for name, values in entry.features.items():
            arity = self._arity.get(name)
            if arity is None:
                self._add_columns(entry, name, len(values))
            elif arity != len(values):
                problem = f"feature {name} has {counted(len(values), 'value')} here and {arity} in earlier lines"
                raise FormatError(self._path, problem, line=entry.line)

    def _add_columns(self, entry: NbestEntry, name: str, arity: int) -> None:
        if name not in (self._dense or ()) and "_" not in name:
            raise FormatError(self._path, f"feature {name} stands here but not in earlier lines", line=entry.line)
        self._starts[name], self._arity[name] = len(self._columns), arity
        self._columns.extend(Column(name, index) for index in range(arity))

    def build(self, metric: Metric) -> NbestPool:
        """The pool of all lists."""
        sentences = list(self._sentences.values())
        longest = max(len(rows.sizes) for rows in sentences)
        statistics = np.zeros((len(sentences), longest, metric.columns), dtype=np.int64)
        padding = np.full((len(sentences), longest), -np.inf)
        for place, rows in enumerate(sentences):
            statistics[place, : len(rows.sizes)] = np.concatenate(rows.counts)
            padding[place, : len(rows.sizes)] = 0.0
        firsts = [place * longest + np.arange(len(rows.sizes)) for place, rows in enumerate(sentences)]
        every = SparseRows(
            np.concatenate([np.repeat(first, rows.sizes) for first, rows in zip(firsts, sentences, strict=True)]),
            np.concatenate([np.array(rows.columns, dtype=np.intp) for rows in sentences]),
            np.concatenate([np.array(rows.values, dtype=np.float64) for rows in sentences]),
        )
        order, dense = self._order(every.columns, int(np.isfinite(padding).sum()))
        # argsort of a permutation is its inverse: from a column to its place in the new order
        every = every._replace(columns=np.argsort(order, kind="stable")[every.columns])
        in_table = every.columns < dense
        features = np.zeros((dense, padding.size))
        features[every.columns[in_table], every.rows[in_table]] = every.values[in_table]
        rest = ~in_table & (every.values != 0.0)
        return NbestPool(
            tuple(self._columns[place] for place in order.tolist()),
            features.reshape(dense, *padding.shape),
            statistics,
            padding,
            metric,
            SparseRows(every.rows[rest], every.columns[rest] - dense, every.values[rest]),
        )

    def _order(self, present: Integers, entries: int) -> tuple[Integers, int]:
        """The order of the columns, dense ones first, and how many these are."""
        if len(self._columns) <= MAXIMAL_COLUMNS:
            return np.arange(len(self._columns)), len(self._columns)
        everywhere = np.bincount(present, minlength=len(self._columns)) == entries
        dense = int(everywhere.sum())
        if dense > MAXIMAL_COLUMNS:
            problem = f"has {dense} values in every line; besides sparse features, at most {MAXIMAL_COLUMNS} are tuned"
            raise FormatError(self._path, problem)
        return np.argsort(~everywhere, kind="stable"), dense
