"""The best distinct strings of a graph, each with its best derivation, exactly.

Best-first search over prefixes of strings. What a prefix can still reach is known from the backward scores, so that
each prefix that is followed is one of a string that is found (k-best strings of weighted automata; Mohri and Riley
2002).
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Iterator
from math import inf

import numpy as np

from smt_bridge.graphs.paths import potentials
from smt_bridge.graphs.phrase_graph import Floats, PhraseGraph
from smt_bridge.graphs.prefixes import BEGINNING, Derivation, Prefix, Reached, ended, followed
from smt_bridge.graphs.prune import gap_of, gaps
from smt_bridge.graphs.word_graph import word_graph

_FEWEST_ARCS = 200
_GROWTH = 4


def best_strings(graph: PhraseGraph, scores_E: Floats, count: int) -> list[Derivation]:
    """The ``count`` distinct strings with the highest scores, best first; all where there are fewer.

    A part of the graph is searched first: strings within its gap have their best derivations in it, so that these are
    exactly those of the whole graph. Where they are too few, a larger part is searched.
    """
    gaps_E = gaps(graph, scores_E)
    size = max(_FEWEST_ARCS, count)
    while True:
        gap = gap_of(gaps_E, size)
        kept = np.flatnonzero(gaps_E <= gap) if gap < inf else np.flatnonzero(gaps_E < inf)
        part = graph.with_arcs(kept)
        found = list(itertools.islice(_search(part, scores_E[kept], gap), count))
        if len(found) == count or gap == inf:
            return [one._replace(arcs=tuple(kept[list(one.arcs)].tolist())) for one in found]
        size *= _GROWTH


def _search(graph: PhraseGraph, scores_E: Floats, gap: float) -> Iterator[Derivation]:
    """The strings that are at most ``gap`` worse than the best, best first."""
    exact = potentials(graph, scores_E)
    if exact.whole == -inf:
        return
    words = word_graph(graph, scores_E)
    backward = exact.backward_N[words.nodes].tolist()
    least = exact.whole - gap
    tie = itertools.count()
    queue: list[tuple[float, int, Prefix | Reached]] = [(-exact.whole, next(tie), BEGINNING)]
    while queue:
        _, _, reached = heapq.heappop(queue)
        if isinstance(reached, Reached):
            yield reached.derivation(graph)
            continue
        for active in followed(words, reached).values():
            bound = max(one.score + backward[place] for place, one in active.items())
            if bound >= least:
                heapq.heappush(queue, (-bound, next(tie), active))
        end = ended(words, reached)
        if end is not None and end.score >= least:
            heapq.heappush(queue, (-end.score, next(tie), end))
