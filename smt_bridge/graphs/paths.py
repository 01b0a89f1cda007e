"""Sums and maxima over all paths of a graph, by going over its arcs forwards and backwards.

Shapes: N nodes, E arcs. Scores are natural logarithms up to a scale and a constant, as a log-linear model has them.
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
