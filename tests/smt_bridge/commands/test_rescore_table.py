"""`smt-bridge rescore-table` on files, with scorers that need no model."""

from __future__ import annotations

import argparse
import gzip
import json
from itertools import islice
from pathlib import Path

import pytest

from nmt_core.errors import ConfigError, NmtError
from nmt_core.files import read_lines
from smt_bridge.commands import rescore_table as command
from smt_bridge.errors import FormatError
from smt_bridge.formats.phrase_table import Window, read_windows
from smt_bridge.phrase_scoring import Scorers
from smt_bridge.scorers import open_scorer
from tests.fakes import LengthPairScorer, TablePairScorer

TABLE = b"a ||| x ||| 1 2 ||| 0-0\na ||| x y ||| 1 2 ||| 0-0\nb ||| z ||| 1 2 ||| 0-0\n"


def parsed(*argv: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    command.add_arguments(parser)
    return parser.parse_args(argv)


def run_with(monkeypatch: pytest.MonkeyPatch, *argv: str) -> int:
    def fake(spec: str) -> LengthPairScorer:
        return LengthPairScorer(float(spec), unknown=frozenset({"y"}))

    monkeypatch.setattr("smt_bridge.scorers.open_scorer", fake)
    return command.run(parsed(*argv))


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "table"
    path.write_bytes(TABLE)
    return path


def test_table_and_record_are_written(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, table: Path) -> None:
    output = tmp_path / "new.gz"
    options = ["--scorer", "0.5", "--reverse-scorer", "1", "--unknown-count", "--output", str(output), "--quiet"]
    assert run_with(monkeypatch, str(table), *options) == 0
    assert gzip.decompress(output.read_bytes()).splitlines() == [
        b"a ||| x ||| 1 2 0.367144 0.135065 1 ||| 0-0",
        b"a ||| x y ||| 1 2 0.222462 0.134795 2.71828 ||| 0-0",
        b"b ||| z ||| 1 2 0.367144 0.135065 1 ||| 0-0",
    ]
    record = json.loads((tmp_path / "new.gz.json").read_bytes())
    assert record["added"] == ["p(target|source)", "p(source|target)", "exp(unknown)"]
    assert record["scores_before"] == 2
    assert record["signatures"] == {"scorer": "fake:length", "reverse_scorer": "fake:length"}
    assert record["counts"]["lines"] == 3
    assert record["options"]["unescape"] is False


def test_summary_goes_to_stderr_and_lines_to_stdout(
    monkeypatch: pytest.MonkeyPatch, table: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    assert run_with(monkeypatch, str(table), "--scorer", "200", "--output", "-") == 0
    out, err = capfdbinary.readouterr()
    assert out.count(b"\n") == 3
    assert b" 1 2 1e-43 ||| 0-0" in out
    assert b"3 lines, 3 distinct pairs scored" in err
    assert b"3 probabilities floored" in err
    assert b"1 of 4 target words" in err


@pytest.mark.parametrize("lines", [1, 2, 3, 99])
def test_dry_run_scores_the_first_lines(
    monkeypatch: pytest.MonkeyPatch, table: Path, capfdbinary: pytest.CaptureFixture[bytes], lines: int
) -> None:
    assert run_with(monkeypatch, str(table), "--scorer", "0.5", "--dry-run", str(lines), "--quiet") == 0
    assert capfdbinary.readouterr().out.count(b"\n") == min(lines, 3)


def test_dry_run_goes_on_over_windows() -> None:
    windows = [Window("t", 1, 1, [b"1", b"2"]), Window("t", 3, 1, [b"3", b"4"]), Window("t", 5, 1, [b"5"])]
    assert [window.lines for window in command._beginning(windows, 3)] == [[b"1", b"2"], [b"3"]]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ([], "--output is missing"),
        (["--dry-run", "0"], "at least 1"),
        (["--dry-run", "5", "--output", "x.gz"], "leave out --output"),
    ],
)
def test_options_that_do_not_fit_are_refused(table: Path, options: list[str], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        command.run(parsed(str(table), "--scorer", "nowhere", *options))


def test_bad_table_is_found_before_the_model_is_opened(tmp_path: Path) -> None:
    (tmp_path / "table").write_bytes(b"")
    with pytest.raises(FormatError, match="empty"):
        command.run(parsed(str(tmp_path / "table"), "--scorer", "nowhere", "--output", str(tmp_path / "new")))


def test_failure_leaves_the_older_output_alone(tmp_path: Path, table: Path) -> None:
    output = tmp_path / "new"
    output.write_bytes(b"older")
    scorers = Scorers(TablePairScorer({("a", "x"): -1.0, ("a", "x y"): float("nan"), ("b", "z"): -1.0}))
    with pytest.raises(NmtError, match="table:2"):
        command.rescore_table(read_windows(str(table)), scorers, output=str(output), sidecar={})
    assert output.read_bytes() == b"older"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["new", "table"]


@pytest.mark.parametrize("size", [1, 2, 50])
def test_windows_do_not_change_the_bytes(tmp_path: Path, table: Path, size: int) -> None:
    output = tmp_path / "new"
    scorers = Scorers(LengthPairScorer())
    command.rescore_table(read_windows(str(table), size=size), scorers, output=str(output), sidecar={})
    assert output.read_bytes() == TABLE.replace(b"1 2 ", b"1 2 0.367144 ").replace(
        b"x y ||| 1 2 0.367144", b"x y ||| 1 2 0.222462"
    )


def test_real_table_keeps_all_but_the_new_number(shared: Path, tmp_path: Path) -> None:
    path = str(shared / "moses" / "en-fr" / "phrase-table.gz")
    output = str(tmp_path / "new.gz")
    windows = islice(read_windows(path, size=2000), 3)
    counts = command.rescore_table(windows, Scorers(LengthPairScorer()), output=output, sidecar={})
    new = list(read_lines(output))
    assert len(new) == counts.lines >= 6000
    for before, after in zip(read_lines(path), new, strict=False):
        old_fields, new_fields = before.split(b"|||"), after.split(b"|||")
        assert new_fields[2].rsplit(b" ", 2)[0] + b" " == old_fields[2]
        assert new_fields[:2] + new_fields[3:] == old_fields[:2] + old_fields[3:]


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ("no/such/folder", "not a model folder"),
        ("tests,no/such/folder", "no/such/folder"),
        ("", "not a model folder"),
        ("grpc:localhost", "grpc:HOST:PORT"),
        ("grpc::50051", "grpc:HOST:PORT"),
        ("grpc:host:port/m", "grpc:HOST:PORT"),
    ],
)
def test_malformed_scorer_is_refused(spec: str, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tests").mkdir()
    with pytest.raises(ConfigError, match=words):
        open_scorer(spec)
