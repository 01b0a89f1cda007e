"""Neural search among the strings of graphs: what it finds, as lines of n-best lists."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

from nmt_core.base.interfaces import Guide
from smt_bridge.graphs.features import GraphFeatures
from smt_bridge.graphs.guide import GraphGuide
from smt_bridge.graphs.lines import nbest_line
from smt_bridge.graphs.phrase_graph import PhraseGraph

FEATURE = "NMT0"
WINDOW = 16  # graphs that are searched together


class Searcher(Protocol):
    """What searches by guides: ``nmt_core.inference.guided_search.GuidedTranslator``."""

    def translate(self, sources: Sequence[str], guides: Sequence[Guide]) -> Sequence[Any]:
        """For every source, which has words, what was ``found``, best first, and whether that is ``proved``."""
        ...


class SearchedGraph(NamedTuple):
    """A graph, the lines of its list, and whether there are no better translations in it."""

    graph: PhraseGraph
    lines: list[bytes]
    proved: bool


def search_window(
    searcher: Searcher,
    features: GraphFeatures,
    window: Sequence[tuple[str, PhraseGraph]],
    *,
    nmt_weight: float = 1.0,
    graph_weight: float = 1.0,
) -> list[SearchedGraph]:
    """Sources and their graphs, searched together by graph_weight · total + nmt_weight · log p; no lines where none is.

    ``nmt_weight`` is above 0.
    """
    every = [GraphGuide(graph, features.scores(graph), weight=graph_weight / nmt_weight) for _, graph in window]
    guides = {number: guide for number, guide in enumerate(every) if not guide.empty}
    found = searcher.translate([window[number][0] for number in guides], list(guides.values()))
    answers = dict(zip(guides, found, strict=True))
    searched = []
    for number, (_, graph) in enumerate(window):
        lines, proved = [], False
        if number in answers:
            proved = answers[number].proved
            for one in answers[number].found:
                derivation = guides[number].derivation(one.reached)
                total = graph_weight * derivation.score + nmt_weight * one.log_prob
                more = f"{FEATURE}= {one.log_prob:.6f}"
                lines.append(nbest_line(graph, derivation, features, more=more, total=total))
        searched.append(SearchedGraph(graph, lines, proved))
    return searched
