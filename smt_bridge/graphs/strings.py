"""A search graph whose arcs are single words, for what is done word by word.

A place is a node of the phrase graph, or what is left of a phrase before a node; equal rests before a node are one
place, whatever began them. Arcs without words are followed at once: their scores are part of the next word's, or of
the end.

The best distinct strings, each with its best derivation, exactly: best-first search over prefixes of strings. What a
prefix can still reach is known from the backward scores, so that each prefix that is followed is one of a string that
is found (k-best strings of weighted automata; Mohri and Riley 2002).
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Iterable, Iterator, Mapping
from math import inf
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from smt_bridge.graphs.features import GraphFeatures
from smt_bridge.graphs.phrase_graph import Floats, PhraseGraph, Words, gap_of, gaps, potentials
from smt_bridge.nbest.entry import NbestEntry, rounded

Arcs = tuple[int, ...]


class Step(NamedTuple):
    """One word: its number in the vocabulary, the place behind it, and the arcs it begins, with their score."""

    word: int
    target: int
    score: float
    arcs: Arcs


class End(NamedTuple):
    """A way to the end without further words."""

    score: float
    arcs: Arcs


class WordGraph(NamedTuple):
    """Places in topological order, the first and the last node among them; ``nodes`` are the nodes of all places.

    Every derivation of the phrase graph is one path: steps, and then an end.
    """

    steps: list[list[Step]]
    ends: list[list[End]]
    nodes: list[int]
    vocabulary: tuple[bytes, ...]


def word_graph(graph: PhraseGraph, scores_E: Floats) -> WordGraph:
    """The graph of a graph whose arcs have these scores."""
    numbers: dict[bytes, int] = {}
    phrases = [tuple(numbers.setdefault(word, len(numbers)) for word in phrase) for phrase in graph.phrases]
    arcs = list(zip(graph.starts_E.tolist(), graph.ends_E.tolist(), graph.phrases_E.tolist(), strict=True))
    places, nodes = _places(graph.nodes, [(end, phrases[phrase]) for _, end, phrase in arcs])
    steps: list[list[Step]] = [[] for _ in nodes]
    ends: list[list[End]] = [[] for _ in nodes]
    for (end, rest), place in places.items():
        if rest:
            steps[place].append(Step(rest[0], places[end, rest[1:]], 0.0, ()))
    ends[-1].append(End(0.0, ()))
    scores = scores_E.tolist()
    for arc in sorted(range(len(arcs)), key=lambda arc: -arcs[arc][0]):  # what follows an empty arc is there before it
        start, end, phrase = arcs[arc]
        place, words = places[start, ()], phrases[phrase]
        if words:
            steps[place].append(Step(words[0], places[end, words[1:]], scores[arc], (arc,)))
        else:
            behind = places[end, ()]
            steps[place] += [
                Step(step.word, step.target, scores[arc] + step.score, (arc, *step.arcs)) for step in steps[behind]
            ]
            ends[place] += [End(scores[arc] + one.score, (arc, *one.arcs)) for one in ends[behind]]
    return WordGraph(steps, ends, nodes, tuple(numbers))


_Place = tuple[int, tuple[int, ...]]  # a node, and the words before it


def _places(nodes: int, arcs: Iterable[_Place]) -> tuple[dict[_Place, int], list[int]]:
    """Numbers of places such that every step leads to a higher one, and the nodes of the places."""
    rests: list[set[tuple[int, ...]]] = [{()} for _ in range(nodes)]
    for end, words in arcs:
        rests[end].update(words[begin:] for begin in range(1, len(words)))
    found: dict[_Place, int] = {}
    for node in range(nodes):
        for rest in sorted(rests[node], key=lambda rest: (-len(rest), rest)):
            found[node, rest] = len(found)
    return found, [node for node, _ in found]


class Derivation(NamedTuple):
    """A string, the score of its best derivation and the arcs of that."""

    words: Words
    score: float
    arcs: Arcs


class Reached(NamedTuple):
    """The best way to a place (or to the end) by the words so far."""

    score: float
    before: Reached | None
    arcs: Arcs

    def derivation(self, graph: PhraseGraph) -> Derivation:
        """All of the way, through the phrase graph that the graph of words was made of."""
        parts: list[Arcs] = []
        reached: Reached | None = self
        while reached is not None:
            parts.append(reached.arcs)
            reached = reached.before
        arcs = tuple(arc for part in reversed(parts) for arc in part)
        return Derivation(tuple(word for arc in arcs for word in graph.words(arc)), self.score, arcs)


Prefix = dict[int, Reached]
"""The places that a prefix leads to."""

BEGINNING: Prefix = {0: Reached(0.0, None, ())}


def followed(words: WordGraph, prefix: Prefix) -> dict[int, Prefix]:
    """What each next word, by its number in the vocabulary, leads to."""
    found: dict[int, Prefix] = {}
    for place, before in prefix.items():
        for word, target, score, arcs in words.steps[place]:
            score += before.score
            active = found.setdefault(word, {})
            known = active.get(target)
            if known is None or score > known.score:
                active[target] = Reached(score, before, arcs)
    return found


def ended(words: WordGraph, prefix: Prefix) -> Reached | None:
    """The best end of the prefix itself, if it is a whole string."""
    found: Reached | None = None
    for place, before in prefix.items():
        for end in words.ends[place]:
            score = before.score + end.score
            if found is None or score > found.score:
                found = Reached(score, before, end.arcs)
    return found


def nbest_entry(
    graph: PhraseGraph,
    derivation: Derivation,
    features: GraphFeatures,
    *,
    more: Mapping[str, float] = MappingProxyType({}),
    total: float | None = None,
) -> NbestEntry:
    """The derivation as an entry of a list: features are the sums over the arcs, and ``more``.

    The total is the derivation's score unless given.
    """
    values_D = graph.features_ED[list(derivation.arcs)].sum(axis=0)
    sparse: dict[str, float] = {}
    for arc in derivation.arcs:
        for name, value in graph.sparse.get(arc, {}).items():
            sparse[name] = sparse.get(name, 0.0) + value
    shown = features.shown(values_D, sparse) | {name: (value,) for name, value in more.items()}
    score = rounded(derivation.score if total is None else total)
    return NbestEntry(graph.sentence, b" ".join(derivation.words), shown, score, 0)


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
