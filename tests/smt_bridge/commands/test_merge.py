"""`smt-bridge merge` from its options to its files, and on to tuned weights."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

import pytest

from smt_bridge.commands.main import main
from smt_bridge.formats.nbest import read_entries
from smt_bridge.signature import find_sidecar

MOSES = (
    "0 ||| le chat noir ||| LM0= -5 WordPenalty0= -3 ||| -3\n0 ||| un chat ||| LM0= -4 WordPenalty0= -2 ||| -4\n"
    "1 ||| oui ||| LM0= -1 WordPenalty0= -1 ||| -1\n"
)
NMT = "0 ||| le chat ||| NMT0= -1 ||| -0.5\n1 ||| non\t||| NMT0= -2 ||| -0.7\n2 ||| si ||| NMT0= -1 ||| -0.1\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("moses.nbest").write_text(MOSES)
    Path("nmt.nbest").write_text(NMT)
    Path("source").write_text("the black cat\nyes\nyes\n")
    Path("reference").write_text("le chat noir\nnon\nsi\n")
    return tmp_path


def test_lists_are_merged_and_what_is_missing_is_written(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lists = ["--list", "moses=moses.nbest", "--list", "nmt=nmt.nbest"]
    more = ["--source", "source", "--exact", "WordPenalty0", "--write-constraints", "moses=missing"]
    assert main(["merge", *lists, *more, "--output", "merged.gz"]) == 0
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
    assert Path("missing").read_text() == "0\tle chat\n1\tnon\n2\tsi\n"
    said = capsys.readouterr().err
    assert "6 hypotheses of 3 sentences" in said
    assert "moses.nbest has no list for 1 of 3" in said
    sidecar = find_sidecar("merged.gz")
    assert sidecar is not None
    assert sidecar.columns["InNmt0"].feature == "merge"


def test_weights_of_a_half_give_that_systems_output(folder: Path) -> None:
    assert main(["merge", "--list", "moses=moses.nbest", "--list", "nmt=nmt.nbest", "--output", "merged"]) == 0
    Path("weights").write_text("[weight]\nFirstNmt0= 1\n")
    options = ["--nbest", "merged", "--weights", "weights", "--lenient", "--source", "source", "--output", "out"]
    assert main(["rerank", *options]) == 0
    assert Path("out").read_text() == "le chat\nnon\nsi\n"


def test_a_guard_is_reported(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["merge", "--list", "moses=moses.nbest", "--list", "nmt=nmt.nbest", "--output", "merged"]) == 0
    options = ["--nbest", "merged", "--reference", "reference", "--halves", "FirstMoses0,FirstNmt0", "--runs", "1"]
    assert main(["tune", *options, "--cross-validate", "3", "--report", "report", "--output", "weights"]) == 0
    assert '"guard": {' in Path("report").read_text()
    assert "FirstMoses0 alone" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (["--list", "nmt.nbest"], "NAME=FILE with a name of letters and digits"),
        (["--list", "a=nmt.nbest", "--list", "A=moses.nbest"], "differ in more than capital letters"),
        (["--list", "a=nmt.nbest", "--exact", "LM0=x"], "no list has such a feature"),
        (["--list", "a=moses.nbest", "--exact", "LM0"], "needs a language model"),
        (["--list", "a=moses.nbest", "--write-constraints", "b=x"], "no list of this name"),
        (["--list", "a=moses.nbest", "--write-constraints", "a=moses.nbest"], "is also read"),
        (["--list", "a=-", "--source", "-"], "only one of the inputs"),
        (["--list", "a=nmt.nbest", "--source", "short"], "nmt.nbest:2: has the id 1 but short has only 1 lines"),
        (["--list", "a=bad"], "bad:2: feature X has 0 values here and 1 in line 1"),
        (["--list", "a=empty"], "empty: is empty"),
    ],
)
def test_bad_input_is_one_line_and_leaves_nothing(
    folder: Path, options: list[str], problem: str, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("short").write_text("one\n")
    Path("bad").write_text("0 ||| a ||| X= 1\n0 ||| b ||| Y= 1\n")
    Path("empty").write_text("")
    before = sorted(os.listdir())
    with contextlib.suppress(SystemExit):
        assert main(["merge", *options, "--output", "merged"]) == 2
    said = capsys.readouterr().err.splitlines()
    assert problem in said[-1]
    assert sorted(os.listdir()) == before


@pytest.mark.parametrize("content", ["mine", '{"id": 0, "text": "le chat", "total": -1}\n'])
def test_what_lies_in_place_of_the_record_stays(folder: Path, content: str, capsys: pytest.CaptureFixture[str]) -> None:
    Path("merged.json").write_text(content)
    second = "nmt=nmt.nbest" if content == "mine" else "nmt=merged.json"
    assert main(["merge", "--list", "moses=moses.nbest", "--list", second, "--output", "merged"]) == 2
    assert "merged.json: is there already and is no record" in capsys.readouterr().err
    assert Path("merged.json").read_text() == content
    assert not Path("merged").exists()


def test_no_record_lies_beside_a_device(folder: Path) -> None:
    Path("null").symlink_to("/dev/null")
    assert main(["merge", "--list", "moses=moses.nbest", "--list", "nmt=nmt.nbest", "--output", "null"]) == 0
    assert not Path("null.json").exists()
