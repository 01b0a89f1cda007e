"""Tuning as ranking (Hopkins and May 2011): a classifier of which of two hypotheses is better.

For every sentence ``SAMPLED`` pairs are drawn; those whose sentence scores differ by at least
``DIFFERENCE`` are candidates, and the ``KEPT`` with the largest difference become examples, in both
directions (section 4 of the paper). Logistic regression with a Gaussian prior on the difference of the
features gives the weights; Newton's method finds them. Dense features are scaled to unit spread within the
lists for this, sparse ones stay as they are.

The two directions of a pair have the same likelihood, so that one is computed and counts twice. All sums are in a
fixed order, without BLAS.

Shapes: D dense and K sparse searched columns, S sentences, L entries of a list, E examples.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from smt_bridge.metrics.bleu import Counts, bleu_plus_one
from smt_bridge.metrics.metric import BLEU, Metric
from smt_bridge.ordered_sum import ordered_sum
from smt_bridge.tuning.options import TuningOptions
from smt_bridge.tuning.pool import NO_ROWS, Floats, NbestPool, SparseRows, Tuned, normalised

SAMPLED = 5000
KEPT = 50
DIFFERENCE = 5.0  # points of the sentence score (0..100)
_PRIOR = 0.5  # precision 1 of the Gaussian prior on features of unit spread, for pairs that count in both directions
_NEWTON_STEPS = 25
_CONJUGATE_STEPS = 250
_EXACT = 1e-10  # of the residual of Newton's equations, relative


def tune_pro(pool: NbestPool, start: Floats, options: TuningOptions, searched: npt.NDArray[np.bool_]) -> Tuned:
    """Weights that rank hypotheses as the metric does.

    The start is kept where the corpus score would be lower. Columns that are not ``searched`` take part with their
    start weight.
    """
    before = Tuned(normalised(start), pool.score(start))
    base = pool.scores(np.where(searched, 0.0, start))
    examples = _examples(pool, searched, base, np.random.default_rng(options.seed))
    if not examples.size:
        return before
    weights = start.copy()
    weights[searched] = logistic_regression(examples, prior=_PRIOR) / pool.spreads()[searched]
    found = pool.judged(weights)
    return found if found.score > before.score else before


class Examples(NamedTuple):
    """Features of the better hypothesis less those of the worse: ``dense`` (D, E), ``sparse`` rows, K of them.

    ``offsets`` (E,) are the differences of the scores of what is not searched.
    """

    dense: Floats
    offsets: Floats
    sparse: SparseRows = NO_ROWS
    sparse_columns: int = 0

    @property
    def size(self) -> int:
        """The number of examples, E."""
        return len(self.offsets)

    def margins(self, weights: Floats) -> Floats:
        """By how much each better hypothesis is ahead (E,), without the offsets, column by column."""
        found = np.zeros(self.size)
        for weight, row in zip(weights, self.dense, strict=False):
            found += weight * row
        if not self.sparse.is_empty:
            found += self.sparse.dot(weights[len(self.dense) :], self.size)
        return found

    def transposed_dot(self, values: Floats) -> Floats:
        """For every column (D + K,) the sum over the examples of feature times value (E,)."""
        dense = np.array([ordered_sum(row * values) for row in self.dense])
        return np.concatenate([dense.reshape(-1), self.sparse.transposed_dot(values, self.sparse_columns)])


def logistic_regression(examples: Examples, *, prior: float) -> Floats:
    """The weights (D + K,) that maximise sum log sigmoid(x . w + o) - prior / 2 |w|^2 over the examples."""
    weights = np.zeros(len(examples.dense) + examples.sparse_columns)
    for _ in range(_NEWTON_STEPS):
        margins = np.clip(examples.margins(weights) + examples.offsets, -500, 500)
        wrong = 1.0 / (1.0 + np.exp(margins))
        gradient = examples.transposed_dot(wrong) - prior * weights
        step = _newton_step(examples, wrong * (1.0 - wrong), gradient, prior)
        longest = float(np.abs(step).max())
        weights = weights + step / max(1.0, longest / 10.0)
        if longest < 1e-8:
            break
    return weights


def _newton_step(examples: Examples, curvature: Floats, gradient: Floats, prior: float) -> Floats:
    """The solution x of (X' diag(curvature) X + prior) x = gradient, by conjugate gradients."""
    step = np.zeros_like(gradient)
    residual, direction = gradient, gradient
    square = _dot(residual, residual)
    enough = square * _EXACT**2
    for _ in range(_CONJUGATE_STEPS):
        if square <= enough:
            break
        image = examples.transposed_dot(curvature * examples.margins(direction)) + prior * direction
        length = square / _dot(direction, image)
        step = step + length * direction
        residual = residual - length * image
        square, before = _dot(residual, residual), square
        direction = residual + (square / before) * direction
    return step


def _dot(first: Floats, second: Floats) -> float:
    return math.fsum((first * second).tolist())


def sentence_scores(counts: Counts, metric: Metric) -> Floats:
    """Scores (N,) of single hypotheses (N, C); of BLEU it is BLEU+1, which the paper uses."""
    return bleu_plus_one(counts) if metric is BLEU else metric.score(counts)


def _examples(
    pool: NbestPool, searched: npt.NDArray[np.bool_], base: Floats, generator: np.random.Generator
) -> Examples:
    """Differences better minus worse, in scaled units."""
    better, worse = _pairs(pool, generator)
    dense = np.flatnonzero(searched[: pool.dense])
    table = pool.features[dense].reshape(len(dense), base.size) / pool.spreads()[dense][:, None]
    sparse_columns = np.flatnonzero(searched[pool.dense :])
    return Examples(
        table[:, better] - table[:, worse],
        base.ravel()[better] - base.ravel()[worse],
        _sparse_differences(pool.sparse, sparse_columns, better, worse),
        len(sparse_columns),
    )


_Places = npt.NDArray[np.intp]


def _pairs(pool: NbestPool, generator: np.random.Generator) -> tuple[_Places, _Places]:
    """The better and the worse hypothesis (E,) of every example, counted through all lists with their padding."""
    length = pool.padding.shape[1]
    pairs = [(np.zeros(0, np.intp), np.zeros(0, np.intp))]
    for sentence in range(len(pool.padding)):
        real = np.flatnonzero(np.isfinite(pool.padding[sentence]))
        scores = sentence_scores(pool.statistics[sentence, real], pool.metric)
        first, second = generator.integers(0, len(real), (2, SAMPLED))
        gaps = scores[first] - scores[second]
        order = np.argsort(-np.abs(gaps), kind="stable")[:KEPT]
        order = order[np.abs(gaps[order]) >= DIFFERENCE]
        swap = gaps[order] < 0
        better = real[np.where(swap, second[order], first[order])]
        worse = real[np.where(swap, first[order], second[order])]
        pairs.append((better + sentence * length, worse + sentence * length))
    return np.concatenate([pair[0] for pair in pairs]), np.concatenate([pair[1] for pair in pairs])


def _sparse_differences(sparse: SparseRows, columns: _Places, better: _Places, worse: _Places) -> SparseRows:
    """The rows of the better hypotheses and, negative, those of the worse, for some of the columns."""
    if sparse.is_empty or not len(columns):
        return NO_ROWS
    place = np.full(int(max(sparse.columns.max(), columns.max())) + 1, -1)
    place[columns] = np.arange(len(columns))
    parts = []
    for hypotheses, sign in ((better, 1.0), (worse, -1.0)):
        first, last = np.searchsorted(sparse.rows, hypotheses), np.searchsorted(sparse.rows, hypotheses + 1)
        sizes = last - first
        row = np.repeat(np.arange(len(hypotheses)), sizes)
        source = np.arange(len(row)) + np.repeat(first - np.cumsum(sizes) + sizes, sizes)
        parts.append((row, place[sparse.columns[source]], sign * sparse.values[source]))
    rows, found, values = (np.concatenate(part) for part in zip(*parts, strict=True))
    kept = found >= 0
    order = np.argsort(rows[kept], kind="stable")
    return SparseRows(rows[kept][order], found[kept][order], values[kept][order])
