"""Leaving out the arcs of a graph that no good path uses (forward-backward pruning; Sixtus and Ortmanns 1999).

The best path is always kept, and of the other arcs those on a complete path of kept arcs.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import inf
from typing import NamedTuple

import numpy as np

from smt_bridge.graphs.phrase_graph import Floats, PhraseGraph


class Potentials(NamedTuple):
    """Over all paths: from the start to a node, from a node to the end, and all of them; -inf where there is none."""

    forward_N: Floats
    backward_N: Floats
    whole: float

    def through(self, graph: PhraseGraph, scores_E: Floats) -> Floats:
        """The same over the paths through each arc (E,)."""
        return self.forward_N[graph.starts_E] + scores_E + self.backward_N[graph.ends_E]


def potentials(graph: PhraseGraph, scores_E: Floats) -> Potentials:
    """The scores of the best paths (Viterbi)."""
    starts, ends, scores = graph.starts_E.tolist(), graph.ends_E.tolist(), scores_E.tolist()
    forward = _relaxed(graph.nodes, 0, zip(starts, ends, scores, strict=True))
    by_start = np.argsort(-graph.starts_E, kind="stable").tolist()
    backward = _relaxed(graph.nodes, graph.nodes - 1, ((ends[arc], starts[arc], scores[arc]) for arc in by_start))
    return Potentials(np.array(forward), np.array(backward), forward[-1])


def _relaxed(nodes: int, origin: int, arcs: Iterable[tuple[int, int, float]]) -> list[float]:
    """What reaches each node; no arc comes before one that ends where it begins."""
    values = [-inf] * nodes
    values[origin] = 0.0
    for begin, end, score in arcs:
        value = values[begin] + score
        if value > -inf:
            values[end] = max(values[end], value)
    return values


_ROUNDING = 1e-9  # of scores added up in another order, for each unit of the largest of them


def gaps(graph: PhraseGraph, scores_E: Floats) -> Floats:
    """How much worse than the best path the best path through each arc is (E,); inf for an arc on no path."""
    found = potentials(graph, scores_E)
    if found.whole == -inf:
        return np.full(graph.arcs, inf)
    missing = found.whole - found.through(graph, scores_E)
    return np.where(missing < _ROUNDING * (1.0 + np.abs(scores_E).max(initial=0.0)), 0.0, missing)


def gap_of(gaps_E: Floats, arcs: int) -> float:
    """The gap that so many arcs are within, at least those of the best path; inf where there are no more."""
    finite = np.sort(gaps_E[gaps_E < inf])
    return float(finite[max(arcs, 1) - 1] + _ROUNDING * (1.0 + finite[-1])) if arcs < len(finite) else inf


def within_gap(graph: PhraseGraph, scores_E: Floats, gap: float) -> PhraseGraph:
    """The arcs whose gap is at most ``gap``: what all paths that are so good are made of."""
    found = gaps(graph, scores_E)
    return graph.with_arcs(np.flatnonzero((found <= gap) & (found < inf)))
