"""Beginnings of a graph's strings: the determinised graph, made as far as it is looked at.

A prefix is followed together with all places of the graph that it leads to, and the best way to each.
"""

from __future__ import annotations

from typing import NamedTuple

from smt_bridge.graphs.phrase_graph import PhraseGraph, Words
from smt_bridge.graphs.word_graph import Arcs, WordGraph


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
