"""The strings of a search graph as what a neural search may write (``nmt_core.base.interfaces.Guide``)."""

from __future__ import annotations

from collections.abc import Iterator
from math import inf

from nmt_core.base.interfaces import GuideStep
from smt_bridge.graphs.paths import potentials
from smt_bridge.graphs.phrase_graph import Floats, PhraseGraph
from smt_bridge.graphs.prefixes import BEGINNING, Derivation, Prefix, Reached, ended, followed
from smt_bridge.graphs.word_graph import word_graph


class GraphGuide:
    """A string has ``weight`` times the score of its best derivation, less that of the best of all.

    A graph that is ``empty`` has no complete derivation, and can lead no search.
    """

    def __init__(self, graph: PhraseGraph, scores_E: Floats, *, weight: float) -> None:
        self._graph, self._weight = graph, weight
        self._words = word_graph(graph, scores_E)
        exact = potentials(graph, scores_E)
        self._best, self._backward = exact.whole, exact.backward_N[self._words.nodes].tolist()
        self._texts = [word.decode("utf-8", "replace") for word in self._words.vocabulary]

    @property
    def empty(self) -> bool:
        """Whether there is no string."""
        return self._best == -inf

    @property
    def beginning(self) -> Prefix:
        """The start of the graph."""
        return BEGINNING

    def follow(self, reached: Prefix) -> Iterator[GuideStep]:
        """As the protocol has it; what is reached at the end is a ``Reached``."""
        for word, prefix in followed(self._words, reached).items():
            bound = max(one.score + self._backward[place] for place, one in prefix.items())
            if bound > -inf:
                yield GuideStep(self._texts[word], prefix, self._part(bound))
        end = ended(self._words, reached)
        if end is not None:
            yield GuideStep(None, end, self._part(end.score))

    def _part(self, score: float) -> float:
        return self._weight * (score - self._best)

    def derivation(self, reached: Reached) -> Derivation:
        """The best derivation of a string, by what is reached at its end."""
        return reached.derivation(self._graph)
