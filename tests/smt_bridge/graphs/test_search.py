"""What leads neural search through a graph, against enumeration."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from smt_bridge.graphs.features import GraphFeatures
from smt_bridge.graphs.reading import read_graphs
from smt_bridge.graphs.search import GraphGuide, GraphLists
from tests.small_graphs import random_graph, write_ini


@pytest.mark.parametrize("seed", range(12))
def test_a_beginning_counts_as_the_best_derivation_that_starts_with_it(tmp_path: Path, seed: int) -> None:
    features, made = GraphFeatures(write_ini(tmp_path)), random_graph(seed)
    (tmp_path / "graph").write_text(made.text())
    (graph,) = read_graphs(str(tmp_path / "graph"), features)
    guide, totals = GraphGuide(graph, features.scores(graph), weight=0.5), made.best_strings()

    def check(reached: Any, words: tuple[str, ...]) -> None:
        for step in guide.follow(reached):
            text = words if step.word is None else (*words, step.word)
            further = [one for one in totals if one == text or (step.word is not None and one[: len(text)] == text)]
            bound = max(totals[one] for one in further) - max(totals.values())
            assert step.bound == pytest.approx(0.5 * bound, abs=1e-6)
            if step.word is not None:
                check(step.reached, text)

    check(guide.beginning, ())


def test_many_graphs_are_searched_16_at_a_time(tmp_path: Path) -> None:
    features, together = GraphFeatures(write_ini(tmp_path)), list[int]()
    (tmp_path / "graph").write_text(random_graph(1).text())
    (graph,) = read_graphs(str(tmp_path / "graph"), features)
    found: Any = SimpleNamespace(hypotheses=[])
    searcher: Any = SimpleNamespace(translate=lambda texts, _: together.append(len(texts)) or [found] * len(texts))
    assert GraphLists(features, searcher).lists(["a"] * 18, [graph] * 18) == [[]] * 18
    assert together == [16, 2]
