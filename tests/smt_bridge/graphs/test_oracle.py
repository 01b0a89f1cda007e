"""The oracle of a search graph against all its strings."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from smt_bridge.graphs.best import oracle_string
from smt_bridge.graphs.features import GraphFeatures
from smt_bridge.graphs.reading import read_graphs
from smt_bridge.graphs.word_graph import WordGraph, word_graph
from smt_bridge.metrics.bleu import References, sentence_bleu
from tests.small_graphs import SmallGraph, random_graph, write_ini


def opened(tmp_path: Path, made: SmallGraph) -> WordGraph:
    features = GraphFeatures(write_ini(tmp_path))
    (tmp_path / "graph").write_text(made.text())
    (graph,) = read_graphs(str(tmp_path / "graph"), features)
    return word_graph(graph, features.scores(graph))


def bleu_of(words: tuple[str, ...], reference: str) -> float:
    return float(sentence_bleu(References([reference], str).statistics([" ".join(words)]))[0])


@pytest.mark.parametrize("seed", range(25))
def test_with_a_wide_beam_it_is_the_best_of_all_strings(tmp_path: Path, seed: int) -> None:
    made = random_graph(seed, nodes=7, arcs=22)
    chance = random.Random(seed)
    letters = "abcd" if seed % 2 else "bd"  # of words that no reference has many strings are equal but for their score
    reference = " ".join(chance.choice(letters) for _ in range(chance.randrange(1, 9)))
    found = oracle_string(opened(tmp_path, made), reference.encode().split(), beam=10**6)
    assert found is not None
    words = tuple(word.decode() for word in found)
    strings = made.best_strings()
    best = max(bleu_of(string, reference) for string in strings)
    assert words in strings
    assert bleu_of(words, reference) == pytest.approx(best)
    equals = [score for string, score in strings.items() if bleu_of(string, reference) == pytest.approx(best)]
    assert strings[words] == pytest.approx(max(equals))


@pytest.mark.parametrize("seed", range(5))
def test_a_narrow_beam_finds_a_string_and_the_reference_where_it_is_there(tmp_path: Path, seed: int) -> None:
    made = random_graph(seed, nodes=8, arcs=30)
    graph = opened(tmp_path, made)
    strings = made.best_strings()
    found = oracle_string(graph, b"b a d c a".split(), beam=2)
    assert found is not None
    assert tuple(word.decode() for word in found) in strings
    for string in list(strings)[:5]:
        assert oracle_string(graph, [word.encode() for word in string], beam=1) == tuple(w.encode() for w in string)


def test_what_is_accepted_are_the_strings_of_the_graph(tmp_path: Path) -> None:
    made = random_graph(4)
    graph = opened(tmp_path, made)
    strings = made.best_strings()
    chance = random.Random(1)
    tries = {tuple(chance.choice("abc") for _ in range(chance.randrange(7))) for _ in range(500)} | set(strings)
    assert {words for words in tries if graph.accepts([w.encode() for w in words])} == set(strings)
