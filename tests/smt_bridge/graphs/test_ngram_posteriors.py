"""Posteriors of n-grams against all derivations."""

from __future__ import annotations

from math import exp
from pathlib import Path

import pytest

from smt_bridge.graphs import posteriors as module
from smt_bridge.graphs.features import GraphFeatures
from smt_bridge.graphs.posteriors import TooLarge, ngram_posteriors
from smt_bridge.graphs.reading import read_graphs
from smt_bridge.graphs.word_graph import word_graph
from tests.small_graphs import SmallGraph, random_graph, write_ini


def by_enumeration(made: SmallGraph, scale: float, order: int) -> dict[tuple[bytes, ...], float]:
    weights: dict[tuple[bytes, ...], float] = {}
    whole = 0.0
    for words, path in made.derivations():
        weight = exp(scale * sum(arc.score for arc in path))
        whole += weight
        text = ["<s>", *words, "</s>"]
        ngrams = {tuple(text[begin : begin + size]) for size in range(1, order + 1) for begin in range(len(text))}
        ngrams = {ngram for ngram in ngrams if ngram != ("<s>",)}
        for ngram in ngrams:
            key = tuple(word.encode() for word in ngram)
            weights[key] = weights.get(key, 0.0) + weight
    return {ngram: weight / whole for ngram, weight in weights.items()}


@pytest.mark.parametrize("scale", [0.0, 0.3, 1.0, 40.0])
@pytest.mark.parametrize("seed", range(10))
def test_posteriors_are_those_of_all_derivations(
    tmp_path: Path, seed: int, scale: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_AT_ONCE", 3)
    made = random_graph(seed, nodes=6 + seed % 3, arcs=16, words="ab" if seed % 2 else "abcd")
    features = GraphFeatures(write_ini(tmp_path))
    (tmp_path / "graph").write_text(made.text())
    (graph,) = read_graphs(str(tmp_path / "graph"), features)
    words = word_graph(graph, features.scores(graph))
    for order in (1, 2, 4):
        found = ngram_posteriors(words, scale=scale, order=order)
        assert {u: p for u, p in found.items() if p > 1e-12} == pytest.approx(
            {u: p for u, p in by_enumeration(made, scale, order).items() if p > 1e-12}, abs=1e-9
        )


def test_a_graph_that_is_too_large_is_refused_before_memory_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_STEPS", 10)
    features = GraphFeatures(write_ini(tmp_path))
    (tmp_path / "graph").write_text(random_graph(3).text())
    (graph,) = read_graphs(str(tmp_path / "graph"), features)
    with pytest.raises(TooLarge):
        ngram_posteriors(word_graph(graph, features.scores(graph)))


def test_without_translations_there_are_none(tmp_path: Path) -> None:
    features = GraphFeatures(write_ini(tmp_path))
    (tmp_path / "graph").write_text("0 hyp=0 stack=0 forward=1 fscore=-1.5\n")
    (graph,) = read_graphs(str(tmp_path / "graph"), features)
    assert ngram_posteriors(word_graph(graph, features.scores(graph))) == {}
