"""Leaving out the arcs of a graph that no good path uses (forward-backward pruning; Sixtus and Ortmanns 1999).

Every way keeps the best path, and of the other arcs those on a complete path of kept arcs.
"""

from __future__ import annotations

from math import inf

import numpy as np

from smt_bridge.graphs.paths import add_logs, best_path, potentials
from smt_bridge.graphs.phrase_graph import Floats, PhraseGraph

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
