"""The best distinct strings of a graph: enumeration on small graphs, Moses' own lists on recorded ones."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

from smt_bridge.graphs import strings as module
from smt_bridge.graphs.features import GraphFeatures
from smt_bridge.graphs.reading import read_graphs
from smt_bridge.graphs.strings import best_strings
from smt_bridge.nbest.entry import NbestEntry
from smt_bridge.nbest.formats import read_entries
from tests.small_graphs import random_graph, write_ini

EXAMPLE_INI = Path(__file__).parents[3] / "examples" / "en-fr" / "moses" / "moses.ini"


@pytest.mark.parametrize("fewest", [3, 1000])
@pytest.mark.parametrize("seed", range(30))
def test_the_best_strings_are_those_of_enumeration(
    tmp_path: Path, seed: int, fewest: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_FEWEST_ARCS", fewest)
    made = random_graph(seed, nodes=4 + seed % 4, arcs=18, words="ab")
    features = GraphFeatures(write_ini(tmp_path))
    (tmp_path / "graph").write_text(made.text())
    (graph,) = read_graphs(str(tmp_path / "graph"), features)
    scores_E = features.scores(graph)
    wanted = {tuple(word.encode() for word in words): score for words, score in made.best_strings().items()}
    for count in (1, 5, len(wanted), len(wanted) + 1):
        found = best_strings(graph, scores_E, count)
        assert len(found) == len({one.words for one in found}) == min(count, len(wanted))
        assert [one.score for one in found] == pytest.approx(sorted(wanted.values(), reverse=True)[:count])
        for one in found:
            assert one.score == pytest.approx(wanted[one.words])
            assert one.score == pytest.approx(scores_E[list(one.arcs)].sum())
            assert one.words == tuple(word for arc in one.arcs for word in graph.words(arc))


def moses_lists(path: Path) -> dict[int, list[NbestEntry]]:
    lists: dict[int, list[NbestEntry]] = {}
    for entry in read_entries(str(path)):
        lists.setdefault(entry.sentence, []).append(entry)
    return lists


def test_a_recorded_graph_has_the_strings_and_totals_of_moses_exhaustive_list(shared: Path) -> None:
    recorded = shared / "moses" / "recorded"
    lists = moses_lists(recorded / "nb")
    features = GraphFeatures(str(EXAMPLE_INI))
    for graph in read_graphs(str(recorded / "osgx"), features):
        found = best_strings(graph, features.scores(graph), 1000)
        wanted = {entry.hypothesis: entry.total for entry in lists.pop(graph.sentence)}
        totals = {b" ".join(one.words): one.score for one in found}
        assert totals == pytest.approx(wanted, rel=1e-5, abs=1e-3)
    assert not lists


def test_real_graphs_have_moses_best_and_all_that_its_100_best_lists_hold(shared: Path) -> None:
    folder = shared / "moses" / "en-fr"
    lists = moses_lists(folder / "graphs" / "nbest100.gz")
    features = GraphFeatures(str(folder / "moses.ini"))
    graphs = read_graphs(str(folder / "graphs" / "extended.gz"), features)
    for number, graph in enumerate(itertools.islice(graphs, 15)):
        if number not in (8, 14):
            continue
        found = best_strings(graph, features.scores(graph), 100)
        wanted = {entry.hypothesis: entry.total or 0.0 for entry in lists[number]}
        first = lists[number][0]
        assert b" ".join(found[0].words) == first.hypothesis
        assert found[0].score == pytest.approx(first.total, abs=1e-3)
        worst = found[-1].score
        listed = {text: total for text, total in wanted.items() if total > worst + 1e-3}
        totals = {b" ".join(one.words): one.score for one in found}
        assert {text: totals[text] for text in listed} == pytest.approx(listed, abs=1e-3)
        assert all(totals[text] >= total - 1e-3 for text, total in wanted.items() if text in totals)
