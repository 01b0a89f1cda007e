"""Lists of a neural search in the search graphs of a running Moses.

They are what ``smt-bridge graph prune --gap`` and ``graph search`` make of the same graphs in files. A graph is read
and pruned as soon as it is complete, since a whole one takes megabytes; what cannot be read leaves its sentence without
such a list.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from smt_bridge.errors import FormatError, WiringError
from smt_bridge.graphs.features import GraphFeatures
from smt_bridge.graphs.phrase_graph import PhraseGraph
from smt_bridge.graphs.prune import within_gap
from smt_bridge.graphs.reading import read_graph
from smt_bridge.graphs.search import WINDOW, Searcher, search_window
from smt_bridge.moses_lines import text_of


class FoundGraph(NamedTuple):
    """A sentence's graph, pruned; or None, and what is wrong with it."""

    graph: PhraseGraph | None
    problem: str = ""


class GraphReader:
    """Reads graphs with these features, and prunes them: arcs whose best path is at most ``gap`` below the best."""

    def __init__(self, features: GraphFeatures, gap: float) -> None:
        self._features, self._gap = features, gap

    def read(self, content: bytes | None) -> FoundGraph:
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
    """The same without lines and phrases that no arc is of."""
    used, phrases_E = np.unique(graph.phrases_E, return_inverse=True)
    phrases = tuple(graph.phrases[number] for number in used.tolist())
    return graph._replace(phrases_E=phrases_E, phrases=phrases, lines=(), head=b"")


class GraphLists:
    """Makes the lists by the search of ``searcher``."""

    def __init__(self, features: GraphFeatures, searcher: Searcher) -> None:
        self._features, self._searcher = features, searcher

    def lists(self, sentences: Sequence[str], graphs: Sequence[PhraseGraph | None]) -> list[list[bytes]]:
        r"""For every sentence the lines of its list, best first, without ``\n``, ids counted from 0; none for None."""
        numbered = [(number, graph) for number, graph in enumerate(graphs) if graph is not None]
        asked = [(text_of(sentences[number].encode()), graph._replace(sentence=number)) for number, graph in numbered]
        found: list[list[bytes]] = [[] for _ in sentences]
        for begin in range(0, len(asked), WINDOW):
            for one in search_window(self._searcher, self._features, asked[begin : begin + WINDOW]):
                found[one.graph.sentence] = [line.removesuffix(b"\n") for line in one.lines]
        return found
