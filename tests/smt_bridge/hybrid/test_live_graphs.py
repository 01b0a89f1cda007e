"""`translate --lists moses:N,nmt:N,graph:N`: what the batch commands make of the graphs of the same Moses."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from nmt_core.commands.main import main as nmt_core
from smt_bridge.commands.main import main
from smt_bridge.moses import graph_pipe
from smt_bridge.nbest.formats import read_entries
from tests.small_moses import write_moses_system
from tests.smt_bridge.hybrid.small_hybrid import GRAPHS, LISTS, SOURCE, recipe, translate

IN = ("InMoses0", "InNmt0", "InGraph0")
SENTENCES = [line for line in SOURCE if line]
FILES = ["--input", "dev", "--output", "out", "--nbest-output", "dev.nbest"]


@pytest.fixture(autouse=True)
def system(folder: Path) -> None:
    """Of Moses, which may reorder: its graphs have more than its lists."""
    write_moses_system(folder, distortion=6)


def run_moses(moses: str) -> None:
    """Its lists and graphs of the development set, without blank lines, in files."""
    files = ["-n-best-list", "moses.nbest", "2", "distinct", "-output-search-graph-extended", "graphs"]
    text = "".join(f"{line}\n" for line in SENTENCES).encode()
    command = [moses, "-f", "moses.ini", "-v", "0", "-n-best-factor", "100", *files]
    subprocess.run(command, input=text, check=True, capture_output=True)


@pytest.mark.parametrize("window", [1, 100])
def test_it_is_what_the_batch_commands_make(
    either_moses: str, folder: Path, window: int, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    write_moses_system(folder, distortion=6)
    recipe(either_moses, *GRAPHS)
    options = ["--recipe", "recipe.json", "--input", "dev", "--nbest-output", "list"]
    assert translate(either_moses, *options, "--output", "out", window=window) == 0
    run_moses(either_moses)
    Path("source").write_text("".join(f"{line}\n" for line in SENTENCES))
    capsysbinary.readouterr()
    search = ["--model", "model", "--source", "source", "--nbest", "4", "--gap", "2"]
    assert main(["graph", "search", "graphs", "--ini", "moses.ini", *search]) == 0
    Path("graph.nbest").write_bytes(capsysbinary.readouterr().out)
    free = ["--model", "model", "--input", "source", "--beam", "4", "--nbest", "3", "--search=forbid_unknown"]
    assert nmt_core(["decode", *free, "--device", "cpu", "--quiet", "--output", "nmt.nbest"]) == 0
    systems = ["--nbest", "moses=moses.nbest", "--nbest", "nmt=nmt.nbest", "--nbest", "graph=graph.nbest"]
    systems += ["--exact", "WordPenalty0"]
    columns = ["--feature", "nmt:model", "--feature", "wordcount", "--device", "cpu", "--quiet"]
    assert main(["add-features", "--source", "source", *systems, *columns, "--output", "rich"]) == 0
    places = [number for number, line in enumerate(SOURCE) if line]
    theirs = re.sub("(?m)^[0-9]+", lambda found: str(places[int(found[0])]), Path("rich").read_text())
    if window == 100:  # the same batches: the same bytes
        assert Path("list").read_text() == theirs
    Path("rich").write_text(theirs)
    for ours, other in zip(read_entries("list"), read_entries("rich"), strict=True):
        assert (ours.sentence, ours.text, list(ours.features)) == (other.sentence, other.text, list(other.features))
        for name, values in ours.features.items():
            assert values == pytest.approx(other.features[name], abs=1e-5)
    new = [entry for entry in read_entries("list") if entry.features["InGraph0"] == (1.0,)]
    assert any(entry.features["InMoses0"] == entry.features["InNmt0"] == (0.0,) for entry in new)
    assert main(["rerank", "--nbest", "rich", "--weights", "weights", "--source", "dev", "--output", "expected"]) == 0
    assert Path("out").read_bytes() == Path("expected").read_bytes()


@pytest.mark.parametrize(
    ("word", "problem"),
    [
        ("NOGRAPH", "Moses wrote no search graph"),
        ("HALF", "there is no complete translation in it"),
        ("WRONG", "its search graph:2: the scores times the weights of moses.ini are 0.750"),
        (" ".join(["ab"] * 40), "its search graph is too large"),
    ],
)
def test_a_graph_that_cannot_be_used_costs_its_list_alone(
    folder: Path,
    moses: str,
    word: str,
    problem: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    recipe(moses, *GRAPHS)
    monkeypatch.setattr(graph_pipe, "MOST_BYTES", 5_000)
    Path("text").write_text(f"ab cd\nef {word} ab\ncd ef\n")
    capsys.readouterr()
    assert translate(moses, "--recipe", "recipe.json", "--input", "text", "--nbest-output", "list") == 0
    said = capsys.readouterr()
    assert said.out.count("\n") == 3
    words = len(word.split()) + 2
    assert f"warning: line 2 ({words} words): {problem}" in said.err
    assert "; translated without a list of its search graph" in said.err
    assert "no list of graph for 1 of 3 sentences" in said.err and said.err.count("warning") == 2
    listed = {name: {entry.sentence for entry in read_entries("list") if entry.features[name] == (1.0,)} for name in IN}
    assert listed == {"InMoses0": {0, 1, 2}, "InNmt0": {0, 1, 2}, "InGraph0": {0, 2}}


def test_moses_that_dies_within_a_graph_writes_it_again(folder: Path, moses: str) -> None:
    recipe(moses, *GRAPHS)
    lines = ["ab cd", f"ef ONCE-IN-GRAPH={folder / 'made'} ab", "cd ef"]
    Path("text").write_text("".join(f"{line}\n" for line in lines))
    options = ["--recipe", "recipe.json", "--input", "text"]
    assert translate(moses, *options, "--output", "one", "--nbest-output", "one.nbest") == 0
    assert (folder / "made").exists()
    assert translate(moses, *options, "--output", "two", "--nbest-output", "two.nbest") == 0
    assert Path("one.nbest").read_bytes() == Path("two.nbest").read_bytes()
    assert {entry.sentence for entry in read_entries("one.nbest") if entry.features["InGraph0"] == (1.0,)} == {0, 1, 2}


def test_a_sentence_moses_dies_of_has_one_warning(folder: Path, moses: str, capsys: pytest.CaptureFixture[str]) -> None:
    recipe(moses, *GRAPHS)
    Path("text").write_text("ab cd\nab DIE\n")
    capsys.readouterr()
    assert translate(moses, "--recipe", "recipe.json", "--input", "text", "--output", "out") == 0
    said = capsys.readouterr().err
    assert said.count("warning: line 2 (2 words): Moses ended") == said.count("warning: line") == 1
    assert "no list of moses for 1 of 2" in said and "no list of graph for 1 of 2" in said


def test_without_moses_there_are_no_graphs_either(
    folder: Path, moses: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    recipe(moses, *GRAPHS)
    monkeypatch.setenv("FAKE_MOSES", "load-fails")
    capsys.readouterr()
    assert translate(moses, "--recipe", "recipe.json", "--input", "dev", "--degrade") == 0
    assert capsys.readouterr().out.count("\n") == len(SOURCE)


def test_the_recipe_has_all_that_makes_the_lists(folder: Path, moses: str, error_line: Callable[..., str]) -> None:
    recipe(moses, *GRAPHS)
    content = json.loads(Path("recipe.json").read_text())
    assert content["graph"] == {"nbest": 4, "beam": 12, "gap": 2.0}
    assert [part["system"] for part in content["columns"]] == ["moses", "nmt", "graph"]
    for change, problem in (
        ({"graph": None}, "columns: expected those of moses and nmt)"),
        ({"graph": {"nbest": 4, "beam": 12, "gap": -1.0}}, "graph.gap"),
        ({"graph": {"nbest": 0, "beam": 12, "gap": 1.0}}, "graph.nbest"),
        ({"moses_options": ["-osgx", "x"]}, "leave out -osgx: this program reads search graphs"),
    ):
        Path("other.json").write_text(json.dumps(content | change))
        assert problem in error_line(translate, moses, "--recipe", "other.json", "--input", "dev")


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ([*GRAPHS, "graph_gap=-1"], "graph_gap': Input should be greater than or equal to 0"),
        (["--lists", "moses:2,nmt:3", "--search", "graph_gap=1"],
         "--search graph_gap needs lists of search graphs: --lis"),
        (["--search", "graph_beam=3"], "--search graph_beam needs lists of search graphs: --lists …,graph:12"),
        ([*GRAPHS, "--model", "grpc:localhost:1"],
         "guidance and graphs need a model of nmt-core, not grpc:localhost:1"),
        ([*GRAPHS, "guidance_weight=1"],
         "--lists with graph: is for lists to tune with; guidance_weight translates wit"),
        ([*GRAPHS, "--moses-options=-osg x"], "leave out -osg: this program reads search graphs"),
        ([*GRAPHS, "--moses-ini", "no.ini"], "no.ini"),
        ([*GRAPHS, "--dtype", "bfloat16"], "is not in float32"),
    ],
)  # fmt: skip
def test_options_that_do_not_go_together(
    folder: Path, moses: str, options: list[str], problem: str, error_line: Callable[..., str]
) -> None:
    assert problem in error_line(translate, moses, *LISTS, *FILES, *options)
    assert not Path("out").exists()
