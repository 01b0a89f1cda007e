"""Pruning of search graphs against enumeration."""

from __future__ import annotations

from math import inf
from pathlib import Path

import numpy as np
import pytest

from smt_bridge.graphs.features import GraphFeatures
from smt_bridge.graphs.phrase_graph import Floats, PhraseGraph, gap_of, gaps, potentials, within_gap
from smt_bridge.graphs.reading import read_graphs
from smt_bridge.graphs.strings import best_strings
from tests.small_graphs import SmallGraph, random_graph, write_ini

SEEDS = range(12)


def opened(tmp_path: Path, made: SmallGraph) -> tuple[PhraseGraph, Floats]:
    features = GraphFeatures(write_ini(tmp_path))
    (tmp_path / "graph").write_text(made.text())
    (graph,) = read_graphs(str(tmp_path / "graph"), features)
    return graph, features.scores(graph)


def arcs_of(graph: PhraseGraph) -> list[tuple[int, int, tuple[bytes, ...], tuple[float, ...]]]:
    words = [graph.words(arc) for arc in range(graph.arcs)]
    features = map(tuple, graph.features_ED.tolist())
    return list(zip(graph.starts_E.tolist(), graph.ends_E.tolist(), words, features, strict=True))


def paths(graph: PhraseGraph, scores_E: Floats) -> list[tuple[tuple[int, ...], float]]:
    """All paths as arcs, and their scores."""
    found: list[tuple[tuple[int, ...], float]] = []

    def follow(node: int, arcs: tuple[int, ...]) -> None:
        if node == graph.nodes - 1:
            found.append((arcs, float(scores_E[list(arcs)].sum())))
        for arc in np.flatnonzero(graph.starts_E == node).tolist():
            follow(int(graph.ends_E[arc]), (*arcs, arc))

    follow(0, ())
    return found


@pytest.mark.parametrize("seed", SEEDS)
def test_gaps_are_those_of_all_paths(tmp_path: Path, seed: int) -> None:
    graph, scores_E = opened(tmp_path, random_graph(seed))
    every = paths(graph, scores_E)
    best = max(score for _, score in every)
    assert potentials(graph, scores_E).whole == pytest.approx(best)
    for arc, gap in enumerate(gaps(graph, scores_E)):
        through = [score for arcs, score in every if arc in arcs]
        assert gap == pytest.approx(best - max(through) if through else inf)


@pytest.mark.parametrize("seed", SEEDS)
def test_within_a_gap_are_exactly_the_arcs_of_the_paths_that_are_so_good(tmp_path: Path, seed: int) -> None:
    graph, scores_E = opened(tmp_path, random_graph(seed))
    every = paths(graph, scores_E)
    best = max(score for _, score in every)
    for gap in (0.0, 1.0, 3.0):
        kept = within_gap(graph, scores_E, gap)
        good = {arc for arcs, score in every if score >= best - gap - 1e-9 for arc in arcs}
        assert arcs_of(kept) == arcs_of(graph.with_arcs(np.array(sorted(good))))


@pytest.mark.parametrize("seed", SEEDS)
def test_every_gap_keeps_the_best_and_no_loose_ends(tmp_path: Path, seed: int) -> None:
    graph, scores_E = opened(tmp_path, random_graph(seed, nodes=8, arcs=30))
    best = best_strings(graph, scores_E, 1)[0]
    limits = [gap_of(gaps(graph, scores_E), arcs) for arcs in (1, 5, 12)]
    smaller = [within_gap(graph, scores_E, gap) for gap in (*limits, 0.0, 1.0, inf)]
    for kept in smaller:
        scores = dict(zip(arcs_of(graph), scores_E.tolist(), strict=True))
        scores_K = np.array([scores[arc] for arc in arcs_of(kept)])
        assert best_strings(kept, scores_K, 1)[0].words == best.words
        assert (gaps(kept, scores_K) < inf).all()
    assert [kept.arcs for kept in smaller[:3]] == sorted(kept.arcs for kept in smaller[:3])
    assert 12 <= smaller[2].arcs <= 13


def test_a_graph_without_translations_stays_empty(tmp_path: Path) -> None:
    features = GraphFeatures(write_ini(tmp_path))
    (tmp_path / "graph").write_text("0 hyp=0 stack=0 forward=1 fscore=-1.5\n")
    (graph,) = read_graphs(str(tmp_path / "graph"), features)
    scores_E = features.scores(graph)
    assert [within_gap(graph, scores_E, gap).arcs for gap in (1.0, inf)] == [0, 0]
    assert best_strings(graph, scores_E, 5) == []
