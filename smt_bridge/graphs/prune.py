"""Leaving out the arcs of a graph that no good path uses (forward-backward pruning; Sixtus and Ortmanns 1999).

Every way keeps the best path, and of the other arcs those on a complete path of kept arcs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from math import exp, inf, log1p
from typing import NamedTuple

import numpy as np

from smt_bridge.graphs.phrase_graph import Floats, PhraseGraph

Plus = Callable[[float, float], float]


def add_logs(first: float, second: float) -> float:
    """log(exp(first) + exp(second))."""
    if first < second:
        first, second = second, first
    return first if second == -inf else first + log1p(exp(second - first))


class Potentials(NamedTuple):
    """Over all paths: from the start to a node, from a node to the end, and all of them; -inf where there is none."""

    forward_N: Floats
    backward_N: Floats
    whole: float

    def through(self, graph: PhraseGraph, scores_E: Floats) -> Floats:
        """The same over the paths through each arc (E,)."""
        return self.forward_N[graph.starts_E] + scores_E + self.backward_N[graph.ends_E]


def potentials(graph: PhraseGraph, scores_E: Floats, plus: Plus = max) -> Potentials:
    """With ``max`` the scores of the best paths (Viterbi), with ``add_logs`` logarithms of sums."""
    starts, ends, scores = graph.starts_E.tolist(), graph.ends_E.tolist(), scores_E.tolist()
    forward = _relaxed(graph.nodes, 0, zip(starts, ends, scores, strict=True), plus)
    by_start = np.argsort(-graph.starts_E, kind="stable").tolist()
    backward = _relaxed(graph.nodes, graph.nodes - 1, ((ends[arc], starts[arc], scores[arc]) for arc in by_start), plus)
    return Potentials(np.array(forward), np.array(backward), forward[-1])


def _relaxed(nodes: int, origin: int, arcs: Iterable[tuple[int, int, float]], plus: Plus) -> list[float]:
    """What reaches each node; no arc comes before one that ends where it begins."""
    values = [-inf] * nodes
    values[origin] = 0.0
    for begin, end, score in arcs:
        value = values[begin] + score
        if value > -inf:
            values[end] = plus(values[end], value)
    return values


def best_path(graph: PhraseGraph, scores_E: Floats) -> Sequence[int]:
    """The arcs of the path with the highest score, of equals the one that comes first; none where there is no path."""
    forward = potentials(graph, scores_E).forward_N
    path: list[int] = []
    node = graph.nodes - 1
    while node and forward[-1] > -inf:
        begin, end = np.searchsorted(graph.ends_E, [node, node + 1])
        arc = int(begin + np.argmax(forward[graph.starts_E[begin:end]] + scores_E[begin:end]))
        path.append(arc)
        node = int(graph.starts_E[arc])
    return path[::-1]


_ROUNDING = 1e-9  # of scores added up in another order, for each unit of the largest of them


def gaps(graph: PhraseGraph, scores_E: Floats) -> Floats:
    """How much worse than the best path the best path through each arc is (E,); inf for an arc on no path."""
    found = potentials(graph, scores_E)
    if found.whole == -inf:
        return np.full(graph.arcs, inf)
    missing = found.whole - found.through(graph, scores_E)
    return np.where(missing < _ROUNDING * (1.0 + np.abs(scores_E).max(initial=0.0)), 0.0, missing)


def posteriors(graph: PhraseGraph, scores_E: Floats, scale: float = 1.0) -> Floats:
    """The share of paths, each counting exp(scale · score), that use each arc (E,)."""
    found = potentials(graph, scale * scores_E, add_logs)
    if found.whole == -inf:
        return np.zeros(graph.arcs)
    shares: Floats = np.exp(np.minimum(0.0, found.through(graph, scale * scores_E) - found.whole))
    return shares


def gap_of(gaps_E: Floats, arcs: int) -> float:
    """The gap that so many arcs are within, at least those of the best path; inf where there are no more."""
    finite = np.sort(gaps_E[gaps_E < inf])
    return float(finite[max(arcs, 1) - 1] + _ROUNDING * (1.0 + finite[-1])) if arcs < len(finite) else inf


def within_gap(graph: PhraseGraph, scores_E: Floats, gap: float) -> PhraseGraph:
    """The arcs whose gap is at most ``gap``: what all paths that are so good are made of."""
    found = gaps(graph, scores_E)
    return graph.with_arcs(np.flatnonzero((found <= gap) & (found < inf)))


def at_most(graph: PhraseGraph, scores_E: Floats, arcs: int) -> PhraseGraph:
    """The ``arcs`` arcs of smallest gap, those as good as the last of them, and at least the best path."""
    return within_gap(graph, scores_E, gap_of(gaps(graph, scores_E), arcs))


def per_word(graph: PhraseGraph, scores_E: Floats, arcs: float) -> PhraseGraph:
    """As ``at_most``, with so many arcs for each word of the best path."""
    words = sum(len(graph.words(arc)) for arc in best_path(graph, scores_E))
    return at_most(graph, scores_E, int(min(arcs * words, graph.arcs)))


def likely(graph: PhraseGraph, scores_E: Floats, least: float, scale: float) -> PhraseGraph:
    """The arcs whose posterior is at least ``least`` and from which both ends are reached by such arcs."""
    kept = posteriors(graph, scores_E, scale) >= least
    kept[best_path(graph, scores_E)] = True
    smaller = graph.with_arcs(np.flatnonzero(kept))
    return within_gap(smaller, np.zeros(smaller.arcs), inf)
