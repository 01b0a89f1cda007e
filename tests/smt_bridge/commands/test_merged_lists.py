"""Several lists of `smt-bridge add-features`, from its options to its files, and on to tuned weights."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from smt_bridge.commands.main import main
from smt_bridge.metadata import field_of, find_metadata
from smt_bridge.nbest.formats import read_entries
from tests.nmt_core.arpa import ARPA

MOSES = (
    "0 ||| le chat noir ||| LM0= -5 WordPenalty0= -3 ||| -3\n0 ||| un chat ||| LM0= -4 WordPenalty0= -2 ||| -4\n"
    "1 ||| oui ||| LM0= -1 WordPenalty0= -1 ||| -1\n"
)
NMT = "0 ||| le chat ||| NMT0= -1 ||| -0.5\n1 ||| non\t||| NMT0= -2 ||| -0.7\n2 ||| si ||| NMT0= -1 ||| -0.1\n"


def merge(*options: str) -> int:
    """Merge lists of the text ``source``, without a model."""
    source = () if "--source" in options else ("--source", "source")
    return main(["add-features", *options, *source, "--quiet"])


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("moses.nbest").write_text(MOSES)
    Path("nmt.nbest").write_text(NMT)
    Path("source").write_text("the black cat\nyes\nyes\n")
    Path("reference").write_text("le chat noir\nnon\nsi\n")
    return tmp_path


def test_lists_are_merged(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lists = ["--nbest", "moses=moses.nbest", "--nbest", "nmt=nmt.nbest"]
    assert merge(*lists, "--exact", "WordPenalty0", "--output", "merged.gz") == 0
    entries = list(read_entries("merged.gz"))
    assert [(e.sentence, e.text) for e in entries] == [
        (0, "le chat noir"),
        (0, "un chat"),
        (0, "le chat"),
        (1, "oui"),
        (1, "non"),
        (2, "si"),
    ]
    assert entries[2].features["WordPenalty0"] == (1.0,)
    said = capsys.readouterr().err
    assert said == (
        "add-features: 6 hypotheses of 3 sentences\nadd-features: moses.nbest has no list for 1 of 3 sentences\n"
    )
    metadata = find_metadata("merged.gz")
    assert metadata is not None
    assert field_of(metadata.columns["InNmt0"], "feature") == "merge"


def test_what_is_to_be_said_of_lists_is_said_once(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = "1 ||| l &apos; ' a ||| LM0= -1 s_a= 1 s_b= 1\n0 ||| b ||| LM0= -2\n1 ||| c ||| LM0= -3\n"
    Path("moses.nbest").write_text(rows)
    Path("nmt.nbest").write_text('1 ||| l " a ||| NMT0= -1\n')
    assert merge("--nbest", "moses=moses.nbest", "--nbest", "nmt=nmt.nbest", "--output", "merged") == 0
    assert capsys.readouterr().err.splitlines() == [
        "add-features: moses.nbest: its 2 or more sparse features (with '_' in the name) are left out",
        "add-features: moses.nbest is not grouped by id: lines of the same id were put together",
        "add-features: 4 hypotheses of 2 sentences",
        "add-features: nmt.nbest has no list for 1 of 2 sentences",
        "add-features: nmt.nbest has plain quotation marks where another list has Moses' escapes (&apos;)",
    ]


def test_names_of_features_keep_their_bytes(folder: Path) -> None:
    Path("moses.nbest").write_bytes(MOSES.encode().replace(b"LM0=", b"L\xe9=").replace(b"chat", b"ch\xe2t"))
    assert merge("--nbest", "moses=moses.nbest", "--nbest", "nmt=nmt.nbest", "--output", "merged") == 0
    first = Path("merged").read_bytes().splitlines()[0]
    assert first.startswith(b"0 ||| le ch\xe2t noir ||| L\xe9= 0 WordPenalty0= 0 TotalMoses0= 0 ")


def test_another_model_for_exact_features_is_refused(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lists = ["--nbest", "a=moses.nbest", "--nbest", "b=nmt.nbest", "--exact", "LM0=lm.arpa", "--output", "merged"]
    Path("lm.arpa").write_text(ARPA)
    assert merge(*lists, "--shards", "1-1") == 0
    Path("lm.arpa").write_text(ARPA.replace("-0.9", "-0.8"))
    assert merge(*lists) == 2
    assert "lm.arpa: changed since the job was begun" in capsys.readouterr().err.splitlines()[-1]
    assert merge(*lists, "--restart") == 0
    values = {entry.text: entry.features["LM0"] for entry in read_entries("merged")}
    assert values["le chat"] == (3.453878,)  # 1.5 ln 10: one unknown word less than "le chat noir"


def test_weights_of_an_indicator_give_that_systems_output(folder: Path) -> None:
    assert merge("--nbest", "moses=moses.nbest", "--nbest", "nmt=nmt.nbest", "--output", "merged") == 0
    Path("weights").write_text("[weight]\nFirstNmt0= 1\n")
    options = ["--nbest", "merged", "--weights", "weights", "--lenient", "--source", "source", "--output", "out"]
    assert main(["rerank", *options]) == 0
    assert Path("out").read_text() == "le chat\nnon\nsi\n"


def documented_keys() -> list[str]:
    """The keys of the report file in docs/lists.md, in their order."""
    _, section = (Path(__file__).parents[3] / "docs" / "lists.md").read_text().split("## The report file\n")
    rows = re.findall(r"^\| (`.*?) \|", section, re.MULTILINE)
    return [key for row in rows for key in re.findall(r"`(\w+)`", row)]


def test_the_comparison_with_single_systems_is_reported(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert merge("--nbest", "moses=moses.nbest", "--nbest", "nmt=nmt.nbest", "--output", "merged") == 0
    options = ["--nbest", "merged", "--reference", "reference", "--tuner", "runs=1"]
    assert main(["tune", *options, "--report", "report", "--output", "weights"]) == 0
    report = json.loads(Path("report").read_text())
    assert list(report) == documented_keys()
    assert report["baselines"].keys() == {"scores", "held_out", "folds", "best", "kept"}
    assert report["baselines"]["scores"].keys() == {"FirstMoses0", "FirstNmt0"}
    assert report["cross_validation"]["held_out"] == report["baselines"]["held_out"]
    assert "FirstMoses0 alone" in capsys.readouterr().err


def test_a_merged_list_is_tuned_by_totals_ranks_and_recomputed_columns(
    folder: Path, capfd: pytest.CaptureFixture[str], error_line: Callable[..., str]
) -> None:
    lists = ["--nbest", "moses=moses.nbest", "--nbest", "nmt=nmt.nbest", "--exact", "WordPenalty0"]
    assert merge(*lists, "--output", "merged") == 0
    added = ["--source", "source", "--feature", "lengthratio", "--jobs", "1", "--quiet"]
    assert main(["add-features", "--nbest", "merged", *added, "--output", "rich"]) == 0
    assert merge("--nbest", "x=nmt.nbest", "--nbest", "y=rich", "--output", "again") == 0
    metadata = find_metadata("again")
    assert metadata is not None and field_of(metadata.columns["YLengthRatio0"], "feature") == "lengthratio"
    capfd.readouterr()
    options = ["--reference", "reference", "--tuner", "runs=1", "--output", "weights"]
    assert main(["tune", "--nbest", "rich", *options]) == 0
    said = capfd.readouterr().err
    of_systems = "TotalMoses0, InMoses0, RankMoses0, TotalNmt0, RankNmt0"
    assert f"tuned WordPenalty0, {of_systems}, LengthRatio0, LengthRatiolog0; the other columns" in said
    assert "FirstMoses0 alone" in said and "FirstNmt0 alone" in said
    assert said.count("held out") == 1
    Path("rich.json").write_text("no metadata")
    assert "rich.json" in error_line(main, ["tune", "--nbest", "rich", *options])
    Path("rich.json").unlink()
    assert main(["tune", "--nbest", "rich", *options]) == 0
    said = capfd.readouterr().err
    assert f"tuned {of_systems}, LengthRatio0, LengthRatiolog0; the other" in said


@pytest.mark.parametrize(
    ("options", "problem"),
    [(["--start", "other"], "of another system"), (["--tuner", "folds=2"], "needs at least two sentences")],
)
def test_what_does_not_fit_the_list_is_refused_before_tuning(
    folder: Path, options: list[str], problem: str, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("other").write_text("Other0= 1\n")
    Path("one").write_text("0 ||| a b ||| A= 1 ||| 1\n0 ||| a c ||| A= 2 ||| 2\n")
    assert main(["tune", "--nbest", "one", "--reference", "reference", "--output", "weights", *options]) == 2
    message = capsys.readouterr().err
    assert message.splitlines()[0] == "tune: 2 of 3 reference lines have no list, and are left out"
    assert problem in message and message.count("\n") == 2
    assert not Path("weights").exists()


OF_A_DERIVATION = "cannot be computed from the words of a hypothesis; a language model's feature and WordPenalty0 can"


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ("--nbest nmt.nbest --nbest moses.nbest",
         "--nbest nmt.nbest: of several lists each needs a name of letters and digits, NAME=FILE"),
        ("--nbest nmt.nbest --exact LM0=lm", "--exact is for several lists: give --nbest NAME=FILE"),
        ("--nbest a=nmt.nbest --nbest-format moses",
         "--nbest-format is for a single list: of several lists each is known by its first lines"),
        ("--nbest a=nmt.nbest --nbest A=moses.nbest",
         "names of lists must differ in more than capital letters; lists of one system go in one file"),
        ("--nbest a=nmt.nbest --exact LM0=x", "--exact LM0: no list has such a feature of one value; there are NMT0"),
        ("--nbest a=two.nbest --exact X0=x", "--exact X0: no list has such a feature of one value; there are LM0"),
        ("--nbest a=moses.nbest --exact LM0",
         "--exact LM0 needs a language model: LM0=FILE (only WordPenalty0 needs none)"),
        ("--nbest a=moses.nbest --exact LM0=", "--exact LM0 has no file behind '='; give NAME=FILE"),
        ("--nbest a=moses.nbest --exact WordPenalty0 --exact WordPenalty0",
         "--exact WordPenalty0 is given twice; give it once"),
        ("--nbest a=moses.nbest --exact WordPenalty0=source",
         "--exact WordPenalty0 counts words and reads no file: leave out =source"),
        ("--nbest a=nmt.nbest --nbest b=moses.nbest --exact BWordPenalty0=",
         "--exact BWordPenalty0 counts words and reads no file: leave out ="),
        ("--nbest a=graph.nbest --exact UnknownWordPenalty0", f"--exact UnknownWordPenalty0 {OF_A_DERIVATION}"),
        ("--nbest a=graph.nbest --exact Distortion0=source", f"--exact Distortion0 {OF_A_DERIVATION}"),
        ("--nbest a=- --source -",
         "standard input is given for source and for nbest, but can be read only once; give files"),
        ("--nbest a=nmt.nbest --source short", "nmt.nbest:2: id 1 is beyond short, which has 1 line (ids begin at 0)"),
        ("--nbest a=bad", "bad:2: feature X has 0 values here and 1 in the first line of a; are these two lists?"),
        ("--nbest a=empty", "empty: is empty; expected an n-best list"),
        ("--nbest a=far", "far:2: X less that of the system's first hypothesis is -6e+38, but Moses' tools read"
         " numbers up to 3.4e+38 only"),
        ("--nbest moses=moses.nbest --nbest other=feature",
         "feature:1: feature LM0 is -1e+308, but Moses' tools read numbers up to 3.4e+38 only"),
        ("--nbest moses=moses.nbest --nbest other=total", "total:1: the total is not a finite number up to 3.4e+38"),
    ],
)  # fmt: skip
def test_bad_input_is_one_line_and_leaves_nothing(
    folder: Path, options: str, problem: str, error_line: Callable[..., str]
) -> None:
    Path("short").write_text("one\n")
    Path("bad").write_text("0 ||| a ||| X= 1\n0 ||| b ||| Y= 1\n")
    Path("good").write_text("0 ||| x ||| X= 1\n")
    Path("empty").write_text("")
    Path("two.nbest").write_text("0 ||| a ||| LM0= -1 TM0= -1 -2 ||| -1\n")
    Path("graph.nbest").write_text("0 ||| a ||| UnknownWordPenalty0= 0 Distortion0= 0 ||| -1\n")
    Path("far").write_text("0 ||| a ||| X= 3e38\n0 ||| b ||| X= -3e38\n")
    Path("feature").write_text("0 ||| a b ||| LM0= -1e308 ||| -1\n")
    Path("total").write_text("0 ||| a b ||| LM0= -1 ||| -1e308\n")
    before = sorted(os.listdir())
    assert error_line(merge, *options.split(), "--output", "merged") == f"smt-bridge add-features: {problem}"
    assert sorted(os.listdir()) == before


@pytest.mark.parametrize("content", ["mine", "0 ||| le chat ||| NMT0= -1 ||| -1\n"])
def test_what_lies_in_place_of_the_record_stays(folder: Path, content: str, error_line: Callable[..., str]) -> None:
    Path("merged.json").write_text(content)
    second = "nmt=nmt.nbest" if content == "mine" else "nmt=merged.json"
    line = error_line(merge, "--nbest", "moses=moses.nbest", "--nbest", second, "--output", "merged")
    assert "merged.json: is there already and is no metadata" in line
    assert Path("merged.json").read_text() == content
    assert not Path("merged").exists()


def test_no_record_lies_beside_a_device(folder: Path) -> None:
    Path("null").symlink_to("/dev/null")
    assert merge("--nbest", "moses=moses.nbest", "--nbest", "nmt=nmt.nbest", "--output", "null") == 0
    assert not Path("null.json").exists()
