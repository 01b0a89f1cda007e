"""Derivations of a graph as lines of an n-best list of Moses."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from smt_bridge.formats.graph_features import GraphFeatures
from smt_bridge.formats.nbest_entry import SEPARATOR, format_number
from smt_bridge.formats.phrase_graph import PhraseGraph
from smt_bridge.graphs.best_strings import Derivation


def nbest_lines(graph: PhraseGraph, derivations: Iterable[Derivation], features: GraphFeatures) -> Iterator[bytes]:
    r"""``id ||| words ||| features ||| total`` with ``\n``; features are the sums over the arcs of a derivation."""
    for words, score, arcs in derivations:
        values_D = graph.features_ED[list(arcs)].sum(axis=0)
        sparse: dict[str, float] = {}
        for arc in arcs:
            for name, value in graph.sparse.get(arc, {}).items():
                sparse[name] = sparse.get(name, 0.0) + value
        shown = features.shown(values_D, sparse).encode("utf-8", "surrogateescape")
        fields = (
            b"%d " % graph.sentence,
            b" %b " % b" ".join(words),
            b" %b " % shown,
            b" %b" % format_number(score).encode(),
        )
        yield SEPARATOR.join(fields) + b"\n"
