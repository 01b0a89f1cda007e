"""`smt-bridge graph` from its options to lists that the other commands take."""

from __future__ import annotations

import gzip
import io
import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from smt_bridge.commands.main import main
from smt_bridge.nbest.entry import NbestEntry
from smt_bridge.nbest.formats import read_entries
from tests.small_graphs import INI, random_graph

GRAPHS = [random_graph(number, nodes=7, arcs=20, sentence=number) for number in range(4)]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("moses.ini").write_text(INI)
    Path("graphs").write_bytes(gzip.compress("".join(graph.text() for graph in GRAPHS).encode()))
    Path("reference").write_text("a b c\n" * len(GRAPHS))
    return tmp_path


def written(capsysbinary: pytest.CaptureFixture[bytes], *arguments: str) -> bytes:
    assert main(["graph", *arguments, "--ini", "moses.ini"]) == 0
    return capsysbinary.readouterr().out


def entries(content: bytes) -> list[NbestEntry]:
    Path("list").write_bytes(content)
    return list(read_entries("list"))


def test_lists_are_the_best_strings(folder: Path, capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    found = entries(written(capsysbinary, "nbest", "graphs", "--nbest", "1000"))
    for graph in GRAPHS:
        totals = {entry.text: entry.total for entry in found if entry.sentence == graph.sentence}
        wanted = {" ".join(words): score for words, score in graph.best_strings().items()}
        assert totals == pytest.approx(wanted, rel=1e-6)
    assert all(list(entry.features) == ["WordPenalty0", "TranslationModel0", "LM0"] for entry in found)


def test_no_number_is_too_large_for_all_there_is(folder: Path, capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    every = written(capsysbinary, "nbest", "graphs", "--nbest", "1000")
    assert written(capsysbinary, "nbest", "graphs", "--nbest", f"{10**17}") == every
    Path("graphs").write_text(random_graph(0, nodes=9, arcs=40).text())
    sizes = [written(capsysbinary, "nbest", "graphs", *options).count(b"\n") for options in ((), ("--nbest", "200"))]
    assert sizes == [100, 165]


def test_ini_and_graphs_come_from_pipes(
    folder: Path, capsysbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    reading, writing = os.pipe()
    os.write(writing, INI.encode())
    os.close(writing)
    assert main(["graph", "nbest", "graphs", "--ini", f"/dev/fd/{reading}"]) == 0
    os.close(reading)
    assert capsysbinary.readouterr().out == written(capsysbinary, "nbest", "graphs")
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BufferedReader(io.BytesIO(Path("graphs").read_bytes()))))
    assert written(capsysbinary, "nbest", "-") == written(capsysbinary, "nbest", "graphs")


def test_a_sentence_without_translation_has_no_lines(folder: Path, capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    Path("osgx").write_text("0 hyp=0 stack=0 forward=1 fscore=-1.5\n" + GRAPHS[1].text())
    assert main(["graph", "nbest", "osgx", "--ini", "moses.ini", "--nbest", "1"]) == 0
    found = capsysbinary.readouterr()
    assert [entry.sentence for entry in entries(found.out)] == [1]
    arcs = len(GRAPHS[1].arcs) + len(GRAPHS[1].complete)
    assert found.err == b"graph nbest: 2 graphs, %d arcs, 1 translation, 1 without a translation\n" % arcs


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["nbest", "graphs", "--nbest", "0"], "--nbest: expected a whole number from 1 up"),
        (["nbest", "graphs", "--gap", "1"],
         "--gap is not for `smt-bridge graph nbest`; --help says for which use it is"),
        (["nbest", "graphs", "--graph-weight", "1"], "--graph-weight is not for `smt-bridge graph nbest`; --help says"),
        (["search", "graphs", "--model", "m"], "`smt-bridge graph search` needs --source"),
        (["list-posteriors", "graphs"], "--ini is not for `smt-bridge graph list-posteriors`"),
        (["search", "graphs"], "`smt-bridge graph search` needs --model"),
        (["nbest", "-", "--weights", "-"], "can be read only once"),
        (["nbest", "absent"], "absent: cannot be read"),
        (["nbest", "empty"], "empty: is empty; expected a search graph"),
        (["nbest", "bad"], "bad:1: expected a search graph"),
        (["list-posteriors", "graphs", "--order", "0"], "--order must be from 1 to 9"),
        (["list-posteriors", "graphs", "--order", "10"], "--order must be from 1 to 9"),
        (["list-posteriors", "graphs", "--order", "9", "--scale", "inf"], "--scale must be a number from 0 on"),
        (["list-posteriors", "graphs", "--order", "9", "--minimum", "-1"], "--minimum must be a number from 0 on"),
        (["show", "graphs"], "'show'"),
    ],
)  # fmt: skip
def test_bad_input_is_one_line(
    folder: Path, arguments: list[str], problem: str, error_line: Callable[..., str]
) -> None:
    Path("empty").touch()
    Path("bad").write_text("bad\n")
    ini = [] if "--order" in arguments else ["--ini", "moses.ini"]
    assert problem in error_line(main, ["graph", *arguments, *ini])
