"""What leads neural search through a graph, against enumeration."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from smt_bridge.graphs.features import GraphFeatures
from smt_bridge.graphs.reading import read_graphs
from smt_bridge.graphs.search import GraphGuide
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
