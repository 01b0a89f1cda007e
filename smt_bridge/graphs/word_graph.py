"""A search graph whose arcs are single words, for what is done word by word.

A place is a node of the phrase graph, or what is left of a phrase before a node; equal rests before a node are one
place, whatever began them. Arcs without words are followed at once: their scores are part of the next word's, or of the
end.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from smt_bridge.graphs.phrase_graph import Floats, PhraseGraph

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
