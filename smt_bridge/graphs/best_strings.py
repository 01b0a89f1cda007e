"""The best distinct strings of a graph, each with its best derivation, exactly.

Best-first search over prefixes of strings: a prefix is followed together with all places of the graph that it leads
to, the best score at each, which is the determinised graph, made as far as it is looked at. What a prefix can still
reach is known from the backward scores, so that each prefix that is followed is one of a string that is found
(k-best strings of weighted automata; Mohri and Riley 2002).
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Iterable, Iterator
from math import inf
from typing import NamedTuple

import numpy as np

from smt_bridge.formats.phrase_graph import Floats, PhraseGraph, Words
from smt_bridge.graphs.paths import potentials
from smt_bridge.graphs.pruning import gap_of, gaps
from smt_bridge.graphs.word_graph import Arcs, WordGraph, word_graph

_FEWEST_ARCS = 200
_GROWTH = 4


class Derivation(NamedTuple):
    """A string, the score of its best derivation and the arcs of that."""

    words: Words
    score: float
    arcs: Arcs


class _Reached(NamedTuple):
    """The best way to a place (or to the end) by the words so far."""

    score: float
    before: _Reached | None
    arcs: Arcs


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
    queue: list[tuple[float, int, dict[int, _Reached] | _Reached]] = [
        (-exact.whole, next(tie), {0: _Reached(0.0, None, ())})
    ]
    while queue:
        _, _, reached = heapq.heappop(queue)
        if isinstance(reached, _Reached):
            yield _derivation(graph, reached)
            continue
        for active in _followed(words, reached):
            bound = max(one.score + backward[place] for place, one in active.items())
            if bound >= least:
                heapq.heappush(queue, (-bound, next(tie), active))
        end = _ended(words, reached)
        if end is not None and end.score >= least:
            heapq.heappush(queue, (-end.score, next(tie), end))


def _followed(words: WordGraph, reached: dict[int, _Reached]) -> Iterable[dict[int, _Reached]]:
    """What each next word leads to."""
    found: dict[int, dict[int, _Reached]] = {}
    for place, before in reached.items():
        for word, target, score, arcs in words.steps[place]:
            score += before.score
            active = found.setdefault(word, {})
            known = active.get(target)
            if known is None or score > known.score:
                active[target] = _Reached(score, before, arcs)
    return found.values()


def _ended(words: WordGraph, reached: dict[int, _Reached]) -> _Reached | None:
    """The best end of the string so far."""
    ends = [
        _Reached(before.score + end.score, before, end.arcs)
        for place, before in reached.items()
        for end in words.ends[place]
    ]
    return max(ends, key=lambda one: one.score, default=None)


def _derivation(graph: PhraseGraph, end: _Reached) -> Derivation:
    parts: list[Arcs] = []
    reached: _Reached | None = end
    while reached is not None:
        parts.append(reached.arcs)
        reached = reached.before
    arcs = tuple(arc for part in reversed(parts) for arc in part)
    return Derivation(tuple(word for arc in arcs for word in graph.words(arc)), end.score, arcs)
