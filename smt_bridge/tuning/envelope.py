"""Upper envelopes of straight lines a + t b, of many lists of lines at once (Och 2003, section 4).

An envelope is found by bisection at intersections ("quickhull" for lines): the winners at minus and
plus infinity (the flattest and the steepest line; of several the highest, of several of these the
earliest) and at 0 meet at some t; a line that is not above their meeting point is nowhere on the
envelope between them, and most lines leave at this first test. All lists go through this together,
which is what makes NumPy fast enough.

Shapes: G lists, L lines of a list, E corners, N lines or edges of any list.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from smt_bridge.tuning.pool import Floats

Integers = npt.NDArray[np.intp]


class Corners(NamedTuple):
    """Where the best entry of a list changes: at ``at`` from ``before`` to ``after``; (E,) each.

    ``group`` is the list; ``before`` and ``after`` are entries of that group's list.
    """

    group: Integers
    at: Floats
    before: Integers
    after: Integers


class Lines(NamedTuple):
    """Lines (N,): the entry of the list it stands for, intercept and slope."""

    entry: Integers
    intercept: Floats
    slope: Floats

    def take(self, chosen: npt.NDArray[np.bool_] | Integers) -> Lines:
        """Some of the lines."""
        places = np.flatnonzero(chosen) if chosen.dtype == np.bool_ else chosen
        return Lines(self.entry.take(places), self.intercept.take(places), self.slope.take(places))


class Edges(NamedTuple):
    """Two lines known to be on the envelope of a list, the flatter one left of the steeper."""

    group: Integers
    left: Lines
    right: Lines

    def meeting(self) -> Floats:
        """Where the two lines cross, (N,)."""
        at: Floats = (self.left.intercept - self.right.intercept) / (self.right.slope - self.left.slope)
        return at


class Points(NamedTuple):
    """Lines that may lie above the two of their edge."""

    edge: Integers
    lines: Lines


class End(NamedTuple):
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


def ends_of(slopes: Floats, real: npt.NDArray[np.bool_]) -> tuple[End, End]:
    """The flattest lines of every list, which win at minus infinity, and the steepest."""
    flattest = np.where(real, slopes, np.inf)
    steepest = np.where(real, slopes, -np.inf)
    rows = np.arange(len(slopes)) * slopes.shape[1]
    found = []
    for table, extreme in ((flattest, flattest.min(axis=1)), (steepest, steepest.max(axis=1))):
        places = np.flatnonzero(table == extreme[:, None])
        found.append(End(places, np.searchsorted(places, rows)))
    return found[0], found[1]


def first_cut(intercepts: Floats, slopes: Floats, ends: tuple[End, End]) -> tuple[Integers, Edges, Points]:
    """Winners at both ends and at 0, edges between neighbours, and the lines above the points where these meet."""
    rows = np.arange(len(intercepts))
    winners = [ends[0].winners(intercepts), intercepts.argmax(axis=1), ends[1].winners(intercepts)]
    lines = [Lines(winner, intercepts[rows, winner], slopes[rows, winner]) for winner in winners]
    cuts = []
    for left, right in itertools.pairwise(lines):
        group = np.flatnonzero(left.slope < right.slope)
        edges = Edges(group, left.take(group), right.take(group))
        cuts.append((edges, _points_above(edges, intercepts, slopes)))
    return winners[0], *concatenated(cuts)


def _points_above(edges: Edges, intercepts: Floats, slopes: Floats) -> Points:
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
    return Points(edge.take(group), Lines(entry, intercepts.take(flat), slopes.take(flat)))


def _just_above(edges: Edges, meeting: Floats) -> Floats:
    """The value at the meeting point, lifted over rounding errors, or a line would be found above itself."""
    value = edges.left.intercept + meeting * edges.left.slope
    scale = np.abs(edges.left.intercept) + np.abs(meeting * edges.left.slope) + np.abs(edges.right.intercept)
    lifted: Floats = value + 1e-12 * (1.0 + scale)
    return lifted


def cut_all(edges: Edges, points: Points) -> Corners:
    """Cut until no edge has a line above it; what remains are the corners."""
    found = []
    while True:
        edges, points, corners = _cut(edges, points)
        found.append(corners)
        if not len(edges.group):
            return Corners(*(np.concatenate(parts) for parts in zip(*found, strict=True)))


def concatenated(cuts: Sequence[tuple[Edges, Points]]) -> tuple[Edges, Points]:
    """Put the edges of several cuts into one row, each point still with its edge."""
    offsets = np.cumsum([0] + [len(edges.group) for edges, _ in cuts])
    edges = Edges(
        np.concatenate([part.group for part, _ in cuts]),
        _join([part.left for part, _ in cuts]),
        _join([part.right for part, _ in cuts]),
    )
    edge = [part.edge + offset for (_, part), offset in zip(cuts, offsets[:-1], strict=True)]
    return edges, Points(np.concatenate(edge), _join([part.lines for _, part in cuts]))


def _cut(edges: Edges, points: Points) -> tuple[Edges, Points, Corners]:
    """Split each edge at its highest point; edges without points are corners of the envelope."""
    meeting = edges.meeting()
    values = points.lines.intercept + meeting.take(points.edge) * points.lines.slope
    best = _just_above(edges, meeting)
    above = np.flatnonzero(values > best.take(points.edge))
    points, values = Points(points.edge.take(above), points.lines.take(above)), values.take(above)
    np.maximum.at(best, points.edge, values)
    winner = np.full(len(best), -1, dtype=np.intp)
    highest = np.flatnonzero(values == best.take(points.edge))
    winner[points.edge[highest[::-1]]] = highest[::-1]
    done, split = np.flatnonzero(winner < 0), np.flatnonzero(winner >= 0)
    corners = Corners(edges.group[done], meeting[done], edges.left.entry[done], edges.right.entry[done])
    middle = points.lines.take(winner[split])
    lefts, rights = edges.left.take(split), edges.right.take(split)
    group = edges.group[split]
    new_edges = Edges(np.concatenate([group, group]), _join([lefts, middle]), _join([middle, rights]))
    return new_edges, _assigned(points, split, middle.slope, count=len(best)), corners


def _join(parts: Sequence[Lines]) -> Lines:
    return Lines(*(np.concatenate(column) for column in zip(*parts, strict=True)))


def _assigned(points: Points, split: Integers, middle_slope: Floats, *, count: int) -> Points:
    """A line below the middle one can still be above it on the side of its own slope only."""
    position = np.zeros(count, dtype=np.intp)
    position[split] = np.arange(len(split))
    edge = position.take(points.edge)
    difference = points.lines.slope - middle_slope.take(edge)
    side = np.where(difference > 0, edge + len(split), edge)
    stay = np.flatnonzero(difference)
    return Points(side.take(stay), points.lines.take(stay))
