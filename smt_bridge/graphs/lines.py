"""Derivations of a graph as lines of an n-best list of Moses."""

from __future__ import annotations

from smt_bridge.graphs.features import GraphFeatures
from smt_bridge.graphs.phrase_graph import PhraseGraph
from smt_bridge.graphs.prefixes import Derivation
from smt_bridge.nbest.entry import SEPARATOR, format_number


def nbest_line(
    graph: PhraseGraph,
    derivation: Derivation,
    features: GraphFeatures,
    *,
    more: str = "",
    total: float | None = None,
) -> bytes:
    r"""``id ||| words ||| features ||| total`` with ``\n``; features are the sums over the arcs, and ``more``.

    The total is the derivation's score unless given.
    """
    values_D = graph.features_ED[list(derivation.arcs)].sum(axis=0)
    sparse: dict[str, float] = {}
    for arc in derivation.arcs:
        for name, value in graph.sparse.get(arc, {}).items():
            sparse[name] = sparse.get(name, 0.0) + value
    shown = " ".join(part for part in (features.shown(values_D, sparse), more) if part)
    fields = (
        b"%d " % graph.sentence,
        b" %b " % b" ".join(derivation.words),
        b" %b " % shown.encode("utf-8", "surrogateescape"),
        b" %b" % format_number(derivation.score if total is None else total).encode(),
    )
    return SEPARATOR.join(fields) + b"\n"
