"""Minimum error rate training (Och 2003), exact along each line and vectorised over all lists.

Along a direction v the score of every hypothesis is a straight line in t, a + t b, with the model
score a and the slope b = v . features. The best hypothesis of a list as a function of t is the upper
envelope of its lines (section 4), corpus BLEU is constant between its corners, so that the best t is
found among finitely many intervals, without any grid.

The envelope is found by bisection at intersections ("quickhull" for lines): the winners at minus and
plus infinity (the flattest and the steepest line; of several the highest, of several of these the
earliest) and at 0 meet at some t; a line that is not above their meeting point is nowhere on the
envelope between them, and most lines leave at this first test. All lists of all restarts go through
this together, which is what makes NumPy fast enough.

Features are scaled to unit spread within the lists for the search and scaled back at its end, so
that directions and starting points mean the same for every feature.

Shapes: D searched columns, S sentences, L entries of a list, R restarts.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from smt_bridge.errors import WiringError
from smt_bridge.metrics.bleu import Counts
from smt_bridge.metrics.metric import BLEU, Metric
from smt_bridge.tuning.expected_bleu import ExpectedBleu
from smt_bridge.tuning.pool import MAXIMAL_COLUMNS, Floats, NbestPool
from smt_bridge.tuning.tuned import Tuned, normalised

_NEAR = 0.05  # standard deviation of new starting points around the best one
_TOGETHER = 5  # restarts that begin near the best point at the same time
_CLIMB_STEPS = 120
_RESTARTS_PER_CLIMB = 10
_MINIMAL_GAIN = 1e-4  # BLEU points (0..100) below which a step is not taken
_ROUNDS = 30
_NARROWEST = 1e-9  # angle of an interval below which rounding decides who wins in it

Integers = npt.NDArray[np.intp]


class Corners(NamedTuple):
    """Where the best entry of a list changes: at ``at`` from ``before`` to ``after``; (E,) each.

    ``group`` tells whose corner it is; ``before`` and ``after`` are entries of that group's list.
    """

    group: Integers
    at: Floats
    before: Integers
    after: Integers


def upper_envelopes(intercepts: Floats, slopes: Floats) -> tuple[Integers, Corners]:
    """Upper envelopes of lines a + t b over all real t, of many lists at once.

    ``intercepts`` and ``slopes`` are (G, L), one row per list; an intercept of -inf is padding. Returns the
    best entry (G,) at minus infinity and all corners, those of one list not necessarily side by side.
    """
    intercepts, slopes = np.ascontiguousarray(intercepts), np.ascontiguousarray(slopes)
    left, edges, points = _first_cut(intercepts, slopes, _ends(slopes, np.isfinite(intercepts)))
    return left, _cut_all(edges, points)


class _Lines(NamedTuple):
    """Lines (N,): the entry of the list it stands for, intercept and slope."""

    entry: Integers
    intercept: Floats
    slope: Floats

    def take(self, chosen: npt.NDArray[np.bool_] | Integers) -> _Lines:
        places = np.flatnonzero(chosen) if chosen.dtype == np.bool_ else chosen
        return _Lines(self.entry.take(places), self.intercept.take(places), self.slope.take(places))


class _Edges(NamedTuple):
    """Two lines known to be on the envelope of a list, the flatter one left of the steeper."""

    group: Integers
    left: _Lines
    right: _Lines

    def meeting(self) -> Floats:
        """Where the two lines cross, (N,)."""
        at: Floats = (self.left.intercept - self.right.intercept) / (self.right.slope - self.left.slope)
        return at


class _Points(NamedTuple):
    """Lines that may lie above the two of their edge."""

    edge: Integers
    lines: _Lines


class _End(NamedTuple):
    """One end of the line: all entries that could win there, list by list.

    ``places`` (T,) count through the table of slopes, ``begins`` (G,) says where those of a list begin.
    """

    places: Integers
    begins: Integers

    def winners(self, intercepts: Floats) -> Integers:
        """The highest of every list, (G,); of several the earliest."""
        values = intercepts.take(self.places)
        lengths = np.diff(self.begins, append=len(self.places))
        highest = np.flatnonzero(values == np.repeat(np.maximum.reduceat(values, self.begins), lengths))
        group, entry = np.divmod(self.places[highest[::-1]], intercepts.shape[1])
        found = np.empty(len(self.begins), dtype=np.intp)
        found[group] = entry
        return found


def _ends(slopes: Floats, real: npt.NDArray[np.bool_]) -> tuple[_End, _End]:
    """The flattest lines of every list, which win at minus infinity, and the steepest."""
    flattest = np.where(real, slopes, np.inf)
    steepest = np.where(real, slopes, -np.inf)
    rows = np.arange(len(slopes)) * slopes.shape[1]
    found = []
    for table, extreme in ((flattest, flattest.min(axis=1)), (steepest, steepest.max(axis=1))):
        places = np.flatnonzero(table == extreme[:, None])
        found.append(_End(places, np.searchsorted(places, rows)))
    return found[0], found[1]


def _first_cut(intercepts: Floats, slopes: Floats, ends: tuple[_End, _End]) -> tuple[Integers, _Edges, _Points]:
    """Winners at both ends and at 0, edges between neighbours, and the lines above the points where these meet."""
    rows = np.arange(len(intercepts))
    winners = [ends[0].winners(intercepts), intercepts.argmax(axis=1), ends[1].winners(intercepts)]
    lines = [_Lines(winner, intercepts[rows, winner], slopes[rows, winner]) for winner in winners]
    cuts = []
    for left, right in itertools.pairwise(lines):
        group = np.flatnonzero(left.slope < right.slope)
        edges = _Edges(group, left.take(group), right.take(group))
        cuts.append((edges, _points_above(edges, intercepts, slopes)))
    return winners[0], *_concatenate(cuts)


def _points_above(edges: _Edges, intercepts: Floats, slopes: Floats) -> _Points:
    meeting = edges.meeting()
    at = np.zeros(len(intercepts))
    limit = np.full(len(intercepts), np.inf)
    edge = np.zeros(len(intercepts), dtype=np.intp)
    at[edges.group], limit[edges.group] = meeting, _just_above(edges, meeting)
    edge[edges.group] = np.arange(len(edges.group))
    values = slopes * at[:, None]
    values += intercepts
    flat = np.flatnonzero(values > limit[:, None])
    group, entry = np.divmod(flat, intercepts.shape[1])
    return _Points(edge.take(group), _Lines(entry, intercepts.take(flat), slopes.take(flat)))


def _just_above(edges: _Edges, meeting: Floats) -> Floats:
    """The value at the meeting point, lifted over rounding errors, or a line would be found above itself."""
    value = edges.left.intercept + meeting * edges.left.slope
    scale = np.abs(edges.left.intercept) + np.abs(meeting * edges.left.slope) + np.abs(edges.right.intercept)
    lifted: Floats = value + 1e-12 * (1.0 + scale)
    return lifted


def _cut_all(edges: _Edges, points: _Points) -> Corners:
    """Cut until no edge has a line above it; what remains are the corners."""
    found = []
    while True:
        edges, points, corners = _cut(edges, points)
        found.append(corners)
        if not len(edges.group):
            return Corners(*(np.concatenate(parts) for parts in zip(*found, strict=True)))


def _concatenate(cuts: Sequence[tuple[_Edges, _Points]]) -> tuple[_Edges, _Points]:
    """Put the edges of several cuts into one row, each point still with its edge."""
    offsets = np.cumsum([0] + [len(edges.group) for edges, _ in cuts])
    edges = _Edges(
        np.concatenate([part.group for part, _ in cuts]),
        _join([part.left for part, _ in cuts]),
        _join([part.right for part, _ in cuts]),
    )
    edge = [part.edge + offset for (_, part), offset in zip(cuts, offsets[:-1], strict=True)]
    return edges, _Points(np.concatenate(edge), _join([part.lines for _, part in cuts]))


def _cut(edges: _Edges, points: _Points) -> tuple[_Edges, _Points, Corners]:
    """Split each edge at its highest point; edges without points are corners of the envelope."""
    meeting = edges.meeting()
    values = points.lines.intercept + meeting.take(points.edge) * points.lines.slope
    best = _just_above(edges, meeting)
    above = np.flatnonzero(values > best.take(points.edge))
    points, values = _Points(points.edge.take(above), points.lines.take(above)), values.take(above)
    np.maximum.at(best, points.edge, values)
    winner = np.full(len(best), -1, dtype=np.intp)
    highest = np.flatnonzero(values == best.take(points.edge))
    winner[points.edge[highest[::-1]]] = highest[::-1]
    done, split = np.flatnonzero(winner < 0), np.flatnonzero(winner >= 0)
    corners = Corners(edges.group[done], meeting[done], edges.left.entry[done], edges.right.entry[done])
    middle = points.lines.take(winner[split])
    lefts, rights = edges.left.take(split), edges.right.take(split)
    group = edges.group[split]
    new_edges = _Edges(np.concatenate([group, group]), _join([lefts, middle]), _join([middle, rights]))
    return new_edges, _hand_down(points, split, middle.slope, count=len(best)), corners


def _join(parts: Sequence[_Lines]) -> _Lines:
    return _Lines(*(np.concatenate(column) for column in zip(*parts, strict=True)))


def _hand_down(points: _Points, split: Integers, middle_slope: Floats, *, count: int) -> _Points:
    """A line below the middle one can still be above it on the side of its own slope only."""
    position = np.zeros(count, dtype=np.intp)
    position[split] = np.arange(len(split))
    edge = position.take(points.edge)
    difference = points.lines.slope - middle_slope.take(edge)
    side = np.where(difference > 0, edge + len(split), edge)
    stay = np.flatnonzero(difference)
    return _Points(side.take(stay), points.lines.take(stay))


class _Search:
    """The state of R restarts that walk side by side: weights (R, D) in scaled units, scores (R, S, L)."""

    def __init__(self, features: Floats, base: Floats, statistics: Counts, weights: Floats, *, metric: Metric) -> None:
        self._metric = metric
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

    def _rescore(self, row: int) -> None:
        self._scores[row] = self._base
        for weight, column in zip(self.weights[row], self._features, strict=True):
            self._scores[row] += weight * column

    def normalise(self, rows: Integers) -> None:
        """Bring the largest weight to 1 (the ranking of hypotheses does not change) and undo rounding errors."""
        if not self._base[np.isfinite(self._base)].any():
            self.weights[rows] /= np.maximum(np.abs(self.weights[rows]).max(axis=1, keepdims=True), 1e-300)
        for row in rows:
            self._rescore(int(row))

    def step(self, rows: Integers, direction: Floats) -> None:
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
        ends = _ends(slopes, self._real)
        for place, row in enumerate(rows):
            left, edges, points = _first_cut(self._scores[row], slopes, ends)
            starts.append(left)
            cuts.append((edges._replace(group=edges.group + place * self._sentences), points))
        corners = _cut_all(*_concatenate(cuts))
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
    scores = np.where(np.diff(borders) > _NARROWEST, metric.score(totals), -np.inf)
    best = int(scores.argmax())
    return float(np.tan(0.5 * (borders[best] + borders[best + 1]))), float(scores[best])


def tune_mert(
    pool: NbestPool,
    start: Floats,
    *,
    tuned: npt.NDArray[np.bool_] | None = None,
    seed: int = 1,
    restarts: int = 20,
    random_directions: int = 4,
) -> Tuned:
    """Find weights of high corpus score on ``pool``, never below that of the start (D,).

    Beside the start, the first five ``restarts`` begin at the start and at random points, of which one
    for every ten restarts first climbs expected BLEU (where BLEU is the metric); the others begin near the
    best point so far. In each round all coordinates and some random directions are searched along the whole
    line, until a round brings no gain.
    Columns outside ``tuned`` keep their start weight. The same seed gives the same weights,
    whatever the number of threads. Raises WiringError where sparse columns are to be tuned.
    """
    searched = pool.varying() if tuned is None else tuned & pool.varying()
    if searched[pool.dense :].any():
        raise WiringError(
            f"MERT tunes up to {MAXIMAL_COLUMNS} values, and there are {len(pool.columns)}: use --tuner mira or"
            " --tuner pro, or name the features to tune with --features"
        )
    columns = np.flatnonzero(searched)
    if not len(columns):
        return Tuned(normalised(start), float(pool.metric.score(pool.best_statistics(start))))
    generator = np.random.default_rng(seed)
    spreads = pool.spreads()
    start = _unit_spread(start, spreads)
    base = pool.scores(np.where(searched, 0.0, start))
    spreads = spreads[columns]
    features = pool.features[columns] / spreads[:, None, None]
    points = _starting_points(start[columns] * spreads, restarts, generator)
    if pool.metric is BLEU:
        points = _climb(
            points, ExpectedBleu(features, base, pool.statistics), math.ceil(restarts / _RESTARTS_PER_CLIMB)
        )
    search = _Search(features, base, pool.statistics, points, metric=pool.metric)
    walk = _Walk(search, generator, random_directions)
    walk.from_points()
    for _ in range(math.ceil((restarts - _TOGETHER) / _TOGETHER)):
        walk.from_near_best()
    return _best_of(search, pool, start, columns=columns, spreads=spreads)


class _Walk:
    """The order of line searches: which restarts go on, in which directions, how far."""

    def __init__(self, search: _Search, generator: np.random.Generator, random_directions: int) -> None:
        self._search = search
        self._generator = generator
        self._random_directions = random_directions

    def from_points(self) -> None:
        """Search from all points; the best third of them until nothing is gained any more."""
        active = np.arange(len(self._search.weights))
        self._round(active)
        active = active[self._by_bleu(active)][: max(2, len(active) // 3)]
        for _ in range(_ROUNDS):
            before = self._search.best[active]
            self._round(active)
            active = active[self._search.best[active] > before + _MINIMAL_GAIN]
            if not len(active):
                return

    def from_near_best(self) -> None:
        """Replace the worst restarts by points near the best one and search from there."""
        search, order = self._search, self._by_bleu(np.arange(len(self._search.weights)))
        rows = order[1:][-_TOGETHER:]
        search.normalise(order[:1])
        steps = self._generator.normal(0.0, _NEAR, (len(rows), search.weights.shape[1]))
        search.weights[rows] = search.weights[order[0]] + steps
        search.best[rows] = -np.inf
        self._round(rows)
        rows = rows[self._by_bleu(rows)][: max(1, len(rows) // 2)]
        self._round(rows)

    def _round(self, rows: Integers) -> None:
        self._search.normalise(rows)
        for direction in _directions(self._search.weights.shape[1], self._random_directions, self._generator):
            self._search.step(rows, direction)

    def _by_bleu(self, rows: Integers) -> Integers:
        return np.argsort(-self._search.best[rows], kind="stable")


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


def _directions(columns: int, random_directions: int, generator: np.random.Generator) -> Floats:
    """All coordinates in random order, then random directions, one per row."""
    coordinates = np.eye(columns)[generator.permutation(columns)]
    if columns == 1:
        return coordinates
    return np.concatenate([coordinates, generator.normal(size=(random_directions, columns))])


def _best_of(search: _Search, pool: NbestPool, start: Floats, *, columns: Integers, spreads: Floats) -> Tuned:
    """Scale back, and judge by the weights as they will be used; the start stays if nothing beats it."""
    best = Tuned(normalised(start), float(pool.metric.score(pool.best_statistics(start))))
    for row in np.argsort(-search.best, kind="stable")[:3]:
        weights = start.copy()
        weights[columns] = search.weights[row] / spreads
        weights = normalised(weights)
        score = float(pool.metric.score(pool.best_statistics(weights)))
        if score > best.score:
            best = Tuned(weights, score)
    return best
