"""Neural search among the strings of graphs: what it finds, as lines of n-best lists."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import inf
from typing import Any, NamedTuple, Protocol

import numpy as np

from nmt_core.base.interfaces import Guide, GuideStep
from smt_bridge.errors import FormatError, WiringError
from smt_bridge.graphs.features import GraphFeatures
from smt_bridge.graphs.phrase_graph import Floats, PhraseGraph, potentials, within_gap
from smt_bridge.graphs.reading import read_graph
from smt_bridge.graphs.strings import BEGINNING, Derivation, Prefix, Reached, ended, followed, nbest_entry, word_graph
from smt_bridge.moses_lines import text_of
from smt_bridge.nbest.entry import NbestEntry, rounded


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


FEATURE = "NMT0"
WINDOW = 16  # graphs that are searched together


class Searcher(Protocol):
    """What searches by guides: ``nmt_core.inference.guided_search.GuidedTranslator``."""

    def translate(self, sources: Sequence[str], guides: Sequence[Guide]) -> Sequence[Any]:
        """For every source, which has words, its ``hypotheses``, best first."""
        ...


def search_window(
    searcher: Searcher,
    features: GraphFeatures,
    window: Sequence[tuple[str, PhraseGraph]],
    *,
    nmt_weight: float = 1.0,
    graph_weight: float = 1.0,
) -> list[list[NbestEntry]]:
    """The list of each source and its graph, searched together by graph_weight · total + nmt_weight · log p.

    It is empty where the graph has no translation. ``nmt_weight`` is above 0.
    """
    every = [GraphGuide(graph, features.scores(graph), weight=graph_weight / nmt_weight) for _, graph in window]
    guides = {number: guide for number, guide in enumerate(every) if not guide.empty}
    found = searcher.translate([window[number][0] for number in guides], list(guides.values()))
    lists: list[list[NbestEntry]] = [[] for _ in window]
    for (number, guide), answer in zip(guides.items(), found, strict=True):
        for one in answer.hypotheses:
            derivation = guide.derivation(one.reached)
            total = graph_weight * derivation.score + nmt_weight * one.log_prob
            more = {FEATURE: rounded(one.log_prob)}
            lists[number].append(nbest_entry(window[number][1], derivation, features, more=more, total=total))
    return lists


class FoundGraph(NamedTuple):
    """A sentence's graph, pruned; or None, and what is wrong with it."""

    graph: PhraseGraph | None
    problem: str = ""


class GraphReader:
    """Reads graphs with these features, and prunes them: arcs whose best path is at most ``gap`` below the best."""

    def __init__(self, features: GraphFeatures, gap: float) -> None:
        self._features, self._gap = features, gap

    def __call__(self, content: bytes | None) -> FoundGraph:
        """The graph in the bytes of one sentence, as ``GraphCutter.take`` gives them."""
        if not content:
            return FoundGraph(
                None, "its search graph is too large" if content is None else "Moses wrote no search graph"
            )
        try:
            graph = read_graph(content, self._features, path="its search graph")
        except (FormatError, WiringError) as error:
            return FoundGraph(None, str(error))
        return FoundGraph(_alone(within_gap(graph, self._features.scores(graph), self._gap)))


def _alone(graph: PhraseGraph) -> PhraseGraph:
    """The same without phrases that no arc is of."""
    used, phrases_E = np.unique(graph.phrases_E, return_inverse=True)
    phrases = tuple(graph.phrases[number] for number in used.tolist())
    return graph._replace(phrases_E=phrases_E, phrases=phrases)


class GraphLists:
    """Makes the lists by the search of ``searcher``."""

    def __init__(self, features: GraphFeatures, searcher: Searcher) -> None:
        self._features, self._searcher = features, searcher

    def lists(self, sentences: Sequence[str], graphs: Sequence[PhraseGraph | None]) -> list[list[NbestEntry]]:
        """For every sentence its list, best first, ids counted from 0; none for None."""
        numbered = [(number, graph) for number, graph in enumerate(graphs) if graph is not None]
        asked = [(text_of(sentences[number].encode()), graph._replace(sentence=number)) for number, graph in numbered]
        found: list[list[NbestEntry]] = [[] for _ in sentences]
        for begin in range(0, len(asked), WINDOW):
            window = asked[begin : begin + WINDOW]
            for (_, graph), entries in zip(window, search_window(self._searcher, self._features, window), strict=True):
                found[graph.sentence] = entries
        return found
