"""Minimum error rate training (Och 2003), exact along each line and vectorised over all lists.

Along a direction v the score of every hypothesis is a straight line in t, a + t b, with the model
score a and the slope b = v . features. The best hypothesis of a list as a function of t is the upper
envelope of its lines (section 4), corpus BLEU is constant between its corners, so that the best t is
found among finitely many intervals, without any grid (``envelope.py``; all lists of all restarts together).

Features are scaled to unit spread within the lists for the search and scaled back at its end, so
that directions and starting points mean the same for every feature.

Shapes: D searched columns, S sentences, L entries of a list, R restarts.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from smt_bridge.errors import WiringError
from smt_bridge.metrics.bleu import Counts
from smt_bridge.metrics.metric import BLEU, Metric
from smt_bridge.tuning.envelope import Integers, concatenated, cut_all, ends_of, first_cut
from smt_bridge.tuning.expected_bleu import ExpectedBleu
from smt_bridge.tuning.options import TuningOptions
from smt_bridge.tuning.pool import MAXIMAL_COLUMNS, Floats, NbestPool, Tuned, normalised

_NEAR = 0.05  # standard deviation of new starting points around the best one
_TOGETHER = 5  # restarts that begin near the best point at the same time
_CLIMB_STEPS = 120
_RESTARTS_PER_CLIMB = 10
_MINIMAL_GAIN = 1e-4  # BLEU points (0..100) below which a step is not taken
_ROUNDS = 30
_RANDOM_DIRECTIONS = 4  # of a round, beside all coordinates
_NARROWEST = 1e-9  # angle of an interval below which rounding decides who wins in it


class _Search:
    """R restarts that walk side by side: weights (R, D) in scaled units, scores (R, S, L)."""

    def __init__(
        self,
        features: Floats,
        base: Floats,
        statistics: Counts,
        weights: Floats,
        *,
        metric: Metric,
        generator: np.random.Generator,
    ) -> None:
        self._metric, self._generator = metric, generator
        self._features = features
        self._base = base
        self._real = np.isfinite(base)
        self._statistics = statistics.reshape(-1, statistics.shape[-1]).astype(np.int32)
        self._sentences, self._entries = base.shape
        self.weights = weights
        self.best = np.full(len(weights), -np.inf)
        self._scores = np.empty((len(weights), *base.shape))
        for row in range(len(weights)):
            self._rescore(row)

    def from_points(self) -> None:
        """Search from all points; the best third of them until nothing is gained any more."""
        active = np.arange(len(self.weights))
        self._round(active)
        active = active[self._by_score(active)][: max(2, len(active) // 3)]
        for _ in range(_ROUNDS):
            before = self.best[active]
            self._round(active)
            active = active[self.best[active] > before + _MINIMAL_GAIN]
            if not len(active):
                return

    def from_near_best(self) -> None:
        """Replace the worst restarts by points near the best one and search from there."""
        order = self._by_score(np.arange(len(self.weights)))
        rows = order[1:][-_TOGETHER:]
        self._normalise(order[:1])
        steps = self._generator.normal(0.0, _NEAR, (len(rows), self.weights.shape[1]))
        self.weights[rows] = self.weights[order[0]] + steps
        self.best[rows] = -np.inf
        self._round(rows)
        rows = rows[self._by_score(rows)][: max(1, len(rows) // 2)]
        self._round(rows)

    def _round(self, rows: Integers) -> None:
        self._normalise(rows)
        for direction in _directions(self.weights.shape[1], self._generator):
            self._step(rows, direction)

    def _by_score(self, rows: Integers) -> Integers:
        return np.argsort(-self.best[rows], kind="stable")

    def _rescore(self, row: int) -> None:
        self._scores[row] = self._base
        for weight, column in zip(self.weights[row], self._features, strict=True):
            self._scores[row] += weight * column

    def _normalise(self, rows: Integers) -> None:
        """Bring the largest weight to 1 (the ranking of hypotheses does not change) and undo rounding errors."""
        if not self._base[np.isfinite(self._base)].any():
            self.weights[rows] /= np.maximum(np.abs(self.weights[rows]).max(axis=1, keepdims=True), 1e-300)
        for row in rows:
            self._rescore(int(row))

    def _step(self, rows: Integers, direction: Floats) -> None:
        """Move each of ``rows`` to the best point along ``direction`` (D,) where that is a gain."""
        slopes = _combine(self._features, direction)
        moves = self._best_moves(rows, slopes)
        for row, (move, score) in zip(rows, moves, strict=True):
            if score > self.best[row] + _MINIMAL_GAIN:
                self.best[row] = score
                self.weights[row] += move * direction
                self._scores[row] += move * slopes

    def _best_moves(self, rows: Integers, slopes: Floats) -> list[tuple[float, float]]:
        """Best step and the score it leads to, per row."""
        starts, cuts = [], []
        ends = ends_of(slopes, self._real)
        for place, row in enumerate(rows):
            left, edges, points = first_cut(self._scores[row], slopes, ends)
            starts.append(left)
            cuts.append((edges._replace(group=edges.group + place * self._sentences), points))
        corners = cut_all(*concatenated(cuts))
        owner, sentence = np.divmod(corners.group, self._sentences)
        flat = sentence * self._entries
        order = np.lexsort((corners.at, owner))
        owner, at, flat = owner[order], corners.at[order], flat[order]
        change = self._statistics.take(flat + corners.after[order], axis=0)
        change -= self._statistics.take(flat + corners.before[order], axis=0)
        bounds = np.searchsorted(owner, np.arange(len(rows) + 1))
        first = np.arange(self._sentences) * self._entries
        return [
            _best_interval(self._statistics[first + left].sum(axis=0), at[begin:end], change[begin:end], self._metric)
            for left, begin, end in zip(starts, bounds[:-1], bounds[1:], strict=True)
        ]


def _combine(features: Floats, direction: Floats) -> Floats:
    """The slopes (S, L) of all hypotheses along a direction."""
    used = np.flatnonzero(direction)
    if len(used) == 1 and direction[used[0]] == 1.0:
        single: Floats = features[used[0]]
        return single
    slopes = np.zeros(features.shape[1:])
    for column in used:
        slopes += direction[column] * features[column]
    return slopes


def _best_interval(start: Counts, at: Floats, change: Counts, metric: Metric) -> tuple[float, float]:
    """The middle of the interval with the highest score, and that score.

    The middle is that of the angle whose tangent t is, so that the unbounded intervals have one too.
    """
    totals = np.concatenate([start[None], change]).cumsum(axis=0, dtype=np.int64)
    borders = np.concatenate([[-0.5 * np.pi], np.arctan(at), [0.5 * np.pi]])
    wide = np.flatnonzero(np.diff(borders) > _NARROWEST)  # at one point, changes come in any order
    scores = metric.score(totals[wide])
    best = int(wide[scores.argmax()])
    return float(np.tan(0.5 * (borders[best] + borders[best + 1]))), float(scores.max())


def tune_mert(pool: NbestPool, start: Floats, options: TuningOptions, searched: npt.NDArray[np.bool_]) -> Tuned:
    """Find weights of high corpus score on ``pool``, never below that of the start (D,).

    Beside the start, the first five restarts begin at the start and at random points, of which one
    for every ten restarts first climbs expected BLEU (where BLEU is the metric); the others begin near the
    best point so far. In each round all coordinates and some random directions are searched along the whole
    line, until a round brings no gain.
    Columns that are not ``searched``, of those that vary, keep their start weight. The same seed gives the same
    weights, whatever the number of threads. Raises WiringError where sparse columns are to be tuned.
    """
    if searched[pool.dense :].any():
        raise WiringError(
            f"MERT tunes up to {MAXIMAL_COLUMNS} values, and there are {len(pool.columns)}: use --tuner mira or"
            " --tuner pro, or name the features to tune with --features"
        )
    columns = np.flatnonzero(searched)
    generator = np.random.default_rng(options.seed)
    spreads = pool.spreads()
    start = _unit_spread(start, spreads)
    base = pool.scores(np.where(searched, 0.0, start))
    spreads = spreads[columns]
    features = pool.features[columns] / spreads[:, None, None]
    restarts = options.restarts
    points = _starting_points(start[columns] * spreads, restarts, generator)
    if pool.metric is BLEU:
        points = _climb(
            points, ExpectedBleu(features, base, pool.statistics), math.ceil(restarts / _RESTARTS_PER_CLIMB)
        )
    search = _Search(features, base, pool.statistics, points, metric=pool.metric, generator=generator)
    search.from_points()
    for _ in range(math.ceil((restarts - _TOGETHER) / _TOGETHER)):
        search.from_near_best()
    return _best_of(search, pool, start, columns=columns, spreads=spreads)


def _unit_spread(weights: Floats, spreads: Floats) -> Floats:
    """Scale all weights (D,) so that the largest contribution to the differences within lists is 1."""
    largest = float(np.abs(weights * spreads).max())
    return weights / largest if largest > 0.0 else weights


def _starting_points(start: Floats, restarts: int, generator: np.random.Generator) -> Floats:
    """The start itself twice, the second to climb from, and random points; one restart per row after the first."""
    if restarts == 0:
        return start[None].copy()
    points = generator.uniform(-0.2, 1.0, (min(restarts, _TOGETHER) - 1, len(start)))
    return np.concatenate([start[None], start[None], points])


def _climb(points: Floats, expected: ExpectedBleu, count: int) -> Floats:
    """Let ``count`` of the points after the first climb expected BLEU."""
    climbed = points.copy()
    for row in range(1, min(count + 1, len(points))):
        climbed[row] = expected.climb(points[row], steps=_CLIMB_STEPS)
    return climbed


def _directions(columns: int, generator: np.random.Generator) -> Floats:
    """All coordinates in random order, then random directions, one per row."""
    coordinates = np.eye(columns)[generator.permutation(columns)]
    if columns == 1:
        return coordinates
    return np.concatenate([coordinates, generator.normal(size=(_RANDOM_DIRECTIONS, columns))])


def _best_of(search: _Search, pool: NbestPool, start: Floats, *, columns: Integers, spreads: Floats) -> Tuned:
    """Scale back, and judge by the weights as they will be used; the start stays if nothing beats it."""
    best = Tuned(normalised(start), pool.score(start))
    for row in np.argsort(-search.best, kind="stable")[:3]:
        weights = start.copy()
        weights[columns] = search.weights[row] / spreads
        found = pool.judged(weights)
        if found.score > best.score:
            best = found
    return best
