"""The search graph of one sentence, and the same without what no good path uses.

Forward-backward pruning (Sixtus and Ortmanns 1999): the best path is always kept, and of the other arcs those on a
complete path of kept arcs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import inf
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Words = tuple[bytes, ...]


class PhraseGraph(NamedTuple):
    """The hypotheses of a phrase-based decoder: N nodes, E arcs with a target phrase and D dense features each.

    A path from node 0 to node N-1 is a derivation; the sum of its arcs' features is what an n-best list shows. Nodes
    are in topological order, arcs in the order of their ends. An arc's phrase is ``phrases[phrases_E[arc]]``, which may
    be empty. ``sparse`` has the sparse features of the arcs that have some. Where no arc ends at node N-1 the decoder
    found no translation. ``line`` is the number of the first line of the graph.
    """

    sentence: int
    nodes: int
    starts_E: Ints
    ends_E: Ints
    phrases_E: Ints
    phrases: tuple[Words, ...]
    features_ED: Floats
    sparse: Mapping[int, Mapping[str, float]]
    line: int

    @property
    def arcs(self) -> int:
        """E."""
        return len(self.starts_E)

    def words(self, arc: int) -> Words:
        """The target words of an arc."""
        return self.phrases[self.phrases_E[arc]]

    def with_arcs(self, kept: Ints) -> PhraseGraph:
        """The same nodes with the arcs of these places, which ascend."""
        sparse = {new: self.sparse[old] for new, old in enumerate(kept.tolist()) if old in self.sparse}
        return self._replace(
            starts_E=self.starts_E[kept],
            ends_E=self.ends_E[kept],
            phrases_E=self.phrases_E[kept],
            features_ED=self.features_ED[kept],
            sparse=sparse,
        )


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
