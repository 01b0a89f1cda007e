"""Readers of Moses' search graphs: line numbers, what is refused, streams."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from smt_bridge.errors import FormatError, WiringError
from smt_bridge.graphs import reading
from smt_bridge.graphs.features import GraphFeatures
from smt_bridge.graphs.phrase_graph import PhraseGraph
from smt_bridge.graphs.reading import read_graph, read_graphs
from tests.small_graphs import INI, WEIGHTS, SmallGraph, random_graph, write_ini

GRAPH = random_graph(1).text()
LONG = re.sub(r'wort\|[^"]*"', 'wort|{}"', GRAPH.replace("{", "{{"), count=1)
EXPECTED = (
    "expected a search graph as `moses -output-search-graph-extended FILE` writes it; hypergraphs, the graphs of chart"
    " decoders, word graphs and SLF lattices cannot be read"
)


@pytest.fixture
def features(tmp_path: Path) -> GraphFeatures:
    return GraphFeatures(write_ini(tmp_path))


def read(tmp_path: Path, features: GraphFeatures, text: str | bytes, name: str = "graphs") -> list[PhraseGraph]:
    (tmp_path / name).write_bytes(text if isinstance(text, bytes) else text.encode())
    return list(read_graphs(str(tmp_path / name), features))


def described(graph: PhraseGraph) -> list[tuple[int, int, str, tuple[float, ...]]]:
    words = [b" ".join(graph.words(arc)).decode() for arc in range(graph.arcs)]
    rows = [tuple(row) for row in graph.features_ED.tolist()]
    return sorted(zip(graph.starts_E.tolist(), graph.ends_E.tolist(), words, rows, strict=True))


def expected(graph: SmallGraph) -> list[tuple[int, int, str, tuple[float, ...]]]:
    ends = [(node, graph.nodes, "", (0.0,) * len(WEIGHTS)) for node in graph.complete]
    return sorted([*(tuple(arc) for arc in graph.arcs), *ends])


@pytest.mark.parametrize("seed", range(20))
def test_a_graph_is_read_as_it_was_made(tmp_path: Path, features: GraphFeatures, seed: int) -> None:
    made = random_graph(seed, nodes=3 + seed % 5, arcs=20)
    (graph,) = read(tmp_path, features, made.text())
    assert (graph.sentence, graph.nodes) == (0, made.nodes + 1)
    assert described(graph) == expected(made)
    assert (np.diff(graph.ends_E) >= 0).all()


def test_a_file_has_graphs_of_ascending_sentences(tmp_path: Path, features: GraphFeatures) -> None:
    text = "".join(random_graph(2, sentence=number).text() for number in (0, 2, 11))
    assert [graph.sentence for graph in read(tmp_path, features, text)] == [0, 2, 11]
    assert [graph.sentence for graph in read(tmp_path, features, text.removesuffix("\n"))] == [0, 2, 11]


def test_sparse_features_and_other_forms_of_numbers(tmp_path: Path, features: GraphFeatures) -> None:
    (tmp_path / "moses.ini").write_text(INI + "PP_a~b= 0.5\n")
    sparse = GraphFeatures(str(tmp_path / "moses.ini"))
    (plain,) = read(tmp_path, features, GRAPH)
    found = re.search(r"transition=(\S+) .*?\) ", GRAPH)
    assert found is not None
    added = found[0].replace(found[1], f"{float(found[1]) + 1.0:.3f}") + "PP_a~b=2.000 PP_c=d=4.000"
    (graph,) = read(tmp_path, sparse, GRAPH.replace(found[0], added, 1))
    np.testing.assert_allclose(graph.features_ED, plain.features_ED)
    assert list(graph.sparse.values()) == [{"PP_a~b": 2.0, "PP_c=d": 4.0}]
    (arc,) = graph.sparse
    assert sparse.scores(graph)[arc] == pytest.approx(features.scores(plain)[arc] + 1.0)


def test_bytes_that_are_not_utf8_pass_through(tmp_path: Path, features: GraphFeatures) -> None:
    made = random_graph(3)
    arcs = tuple(arc._replace(words="x") for arc in made.arcs)
    odd = made._replace(arcs=arcs).text().encode().replace(b'|x"', b'|\xe9\x85\xa0"')
    (graph,) = read(tmp_path, features, odd)
    assert set(graph.phrases) == {(), (b"\xe9\x85\xa0",)}


def test_words_may_look_like_anything(tmp_path: Path, features: GraphFeatures) -> None:
    made = random_graph(3)
    arcs = tuple(arc._replace(words='[3] a=b \xa0 # "x') if arc.words else arc for arc in made.arcs)
    (graph,) = read(tmp_path, features, made._replace(arcs=arcs).text())
    assert {b" ".join(words).decode() for words in graph.phrases} == {"", '[3] a=b \xa0 # "x'}


def test_a_graph_without_a_complete_hypothesis_has_no_way_to_the_end(tmp_path: Path, features: GraphFeatures) -> None:
    (graph,) = read(tmp_path, features, "4 hyp=0 stack=0 forward=1 fscore=-1.5\n")
    assert (graph.sentence, graph.nodes, graph.arcs) == (4, 2, 0)
    (graph,) = read(tmp_path, features, GRAPH.replace("forward=-1", "forward=7"))
    assert not (graph.ends_E == graph.nodes - 1).any()


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", f"graphs: is empty; {EXPECTED}$"),
        ("VERSION=1.1\nUTTERANCE=0\n", f"graphs:1: {EXPECTED}$"),
        ("# target ||| features ||| source-covered\n2 2\n", "graphs:1: expected .*hypergraphs"),
        (GRAPH.replace("stack=0", "stack=1", 1), "graphs:1: expected `ID hyp=0 stack=0 forward=… fscore=…`, where a"),
        (GRAPH.replace("back=0", "back=77", 1),
         r"graphs:2: comes from hypothesis 77, of which no earlier stack has a line; is the file complete\?$"),
        (GRAPH.replace("hyp=1 ", "hyp=0 "), "comes from hypothesis"),
        (GRAPH.replace('" out=', " out=", 1), "graphs:2: expected `ID hyp=1"),
        (GRAPH.replace("wort|", "wort|NN|", 1),
         r"graphs:2: has several factors, or `\|` in a word, behind out=; only words of one factor can be read$"),
        (GRAPH.replace(') " out', ') x" out', 1),
         r'graphs:2: expected `ID hyp=1 .* out="source\|target"`, and sparse features as name=value$'),
        (GRAPH.replace(') " out', ') x=1e39" out', 1), "graphs:2: '1e39' is not a score; expected a number$"),
        (GRAPH.replace(') " out', ') x=-1e39" out', 1), "graphs:2: '-1e39' is not a score; expected a number$"),
        (GRAPH.replace(') " out', ') x=nan" out', 1), "graphs:2: 'nan' is not a score; expected a number$"),
        (re.sub(r' scores=".*?" out="(.*?)"', r" out=\1", GRAPH), "graphs:2: .*-output-search-graph-extended"),
        ("0 hyp=0 stack=0\n0 hyp=1 stack=1 back=0 score=-1 ",
         "graphs:1: has no scores; .*-output-search-graph-extended"),
        (GRAPH.replace("core=(", "core=(0.000,", 1),
         "graphs:2: has 6 scores but .*moses.ini has 5; give the moses.ini of"),
        (re.sub(r"core=\([^,]*", "core=(1e", GRAPH, count=1), "graphs:2: '1e' is not a score; expected a number"),
        (LONG.format("x " * 501), "graphs:1: sentence 0 has a phrase of 501 words; is the file damaged\\?$"),
        (GRAPH + GRAPH.partition("\n")[2].replace("0 hyp", "1 hyp"), "graphs:16: expected `ID hyp=1"),
        (GRAPH + GRAPH, "graphs:16: sentence 0 comes after 0; expected ascending ids, each once"),
        (GRAPH + GRAPH.replace("0 hyp", "1 hyp") + GRAPH,
         "graphs:31: sentence 0 comes after 1; expected ascending ids, each once"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_named_with_its_line(tmp_path: Path, features: GraphFeatures, text: str, problem: str) -> None:
    with pytest.raises(FormatError, match=problem):
        read(tmp_path, features, text)


def test_limits_of_a_phrase_and_a_graph(
    tmp_path: Path, features: GraphFeatures, monkeypatch: pytest.MonkeyPatch
) -> None:
    (graph,) = read(tmp_path, features, LONG.format("x " * 500))
    assert max(map(len, graph.phrases)) == 500
    monkeypatch.setattr(reading, "_LARGEST_GRAPH", 1 << 20)
    with pytest.raises(FormatError, match=r"graphs: one graph is larger than 1 MiB; is this the right file\?$"):
        read(tmp_path, features, GRAPH + "x" * (1 << 20))
    with pytest.raises(FormatError, match=r"graph:16: has several graphs; expected that of one sentence$"):
        read_graph((GRAPH + GRAPH.replace("0 hyp", "1 hyp")).encode(), features, path="graph")


@pytest.mark.parametrize(("difference", "noticed"), [(0.001, False), (0.004, True), (-0.004, True)])
def test_totals_may_differ_by_the_rounding_of_three_decimals(
    tmp_path: Path, features: GraphFeatures, difference: float, noticed: bool
) -> None:
    found = re.search(r"transition=(\S+)", GRAPH)
    assert found is not None
    given = float(found[1]) + difference
    changed = GRAPH.replace(found[0], f"transition={given:.3f}", 1)
    if not noticed:
        assert len(read(tmp_path, features, changed)) == 1
        return
    with pytest.raises(WiringError) as caught:
        read(tmp_path, features, changed)
    problem = (
        f"the scores times the weights of {tmp_path}/moses.ini are {float(found[1]):.3f} but transition={given:.3f}"
    )
    assert str(caught.value) == f"{tmp_path}/graphs:2: {problem}; give the moses.ini of this run"


def test_an_ini_of_another_run_is_noticed(tmp_path: Path, features: GraphFeatures) -> None:
    (tmp_path / "moses.ini").write_text(INI.replace("LM0= 0.5", "LM0= 0.6"))
    other = GraphFeatures(str(tmp_path / "moses.ini"))
    with pytest.raises(
        WiringError, match=r"graphs:\d+: the scores times the weights of .*moses.ini are .* transition="
    ):
        read(tmp_path, other, GRAPH)


@pytest.mark.parametrize(
    ("weights", "problem"),
    [
        ("LM0= 1\n", "weights: no weight for WordPenalty0, which has 1 value in n-best lists$"),
        ("LM0= 1\nWordPenalty0= 1\nTranslationModel0= 1\n",
         "weights: 1 weight for TranslationModel0, which has 2 values in n-best lists$"),
        ("LM0= 1\nNMT0= 1\n",
         "weights: NMT0 is no feature of the decoder, so that its weight cannot count in a graph; leave it out$"),
    ],
)  # fmt: skip
def test_weights_of_other_features_are_refused(tmp_path: Path, weights: str, problem: str) -> None:
    (tmp_path / "weights").write_text(weights)
    with pytest.raises(WiringError, match=problem):
        GraphFeatures(write_ini(tmp_path), str(tmp_path / "weights"))


@pytest.mark.parametrize(
    ("ini", "problem"),
    [
        ("LM0= 1\n", r"ini: has no \[feature\] section; give the moses.ini of the decoder that wrote the graphs$"),
        (INI.replace("name=LM0", "name=LM0\nEditOps"),
         r"ini: the feature EditOps0 has no weights, and only Moses knows how many scores it has; add as many"
         r" weights \(Moses takes 1\)$"),
        (INI.replace("0.2 0.7", "0.2"),
         "the feature TranslationModel0 has 2 scores but 1 weight; Moses would stop here$"),
    ],
)  # fmt: skip
def test_an_ini_that_moses_would_refuse_is_refused(tmp_path: Path, ini: str, problem: str) -> None:
    (tmp_path / "moses.ini").write_text(ini)
    with pytest.raises(WiringError, match=problem):
        GraphFeatures(str(tmp_path / "moses.ini"))


def test_other_weights_rank_and_what_is_not_tuneable_keeps_its_own(tmp_path: Path) -> None:
    (tmp_path / "weights").write_text("LM0= 2\nWordPenalty0= 3\nTranslationModel0= 4 5\nNMT0= 0\nPP_a= 7\n")
    chosen = GraphFeatures(write_ini(tmp_path), str(tmp_path / "weights"))
    assert chosen.weights_D.tolist() == [1.0, 3.0, 4.0, 5.0, 2.0]
    assert chosen._sparse["PP_a"] == 7.0
    (tmp_path / "moses.ini").write_text(INI.replace("LM0= 0.5\n", ""))  # for which Moses takes 1
    assert GraphFeatures(str(tmp_path / "moses.ini")).weights_D.tolist()[-1] == 1.0
    (tmp_path / "moses.ini").write_text(INI.replace("num-features=2", "num-features=2 tuneable-components=false,true"))
    for given, expected in (("4 5", [4.0, 5.0]), ("5", [0.2, 5.0])):  # of all components, and of those that lists show
        (tmp_path / "weights").write_text(f"LM0= 2\nWordPenalty0= 3\nTranslationModel0= {given}\n")
        chosen = GraphFeatures(str(tmp_path / "moses.ini"), str(tmp_path / "weights"))
        assert chosen.weights_D.tolist() == [1.0, 3.0, *expected, 2.0]
