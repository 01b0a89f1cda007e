"""`smt-bridge rescore-table` on files, with scorers that need no model."""

from __future__ import annotations

import argparse
import gzip
import json
import math
import re
from collections.abc import Callable
from contextlib import nullcontext
from itertools import islice
from pathlib import Path

import pytest

from nmt_core.base.errors import ConfigError, NmtError
from nmt_core.files import read_lines
from smt_bridge.commands import rescore_table as command
from smt_bridge.commands.main import main
from smt_bridge.errors import FormatError
from smt_bridge.models import open_model, server_address
from smt_bridge.moses_lines import parse_factors, pick_factor
from smt_bridge.tables import rescore
from smt_bridge.tables.table import Window, split_window
from tests.fakes import LengthPairScorer, TablePairScorer

TABLE = b"a ||| x ||| 1 2 ||| 0-0\na ||| x y ||| 1 2 ||| 0-0\nb ||| z ||| 1 2 ||| 0-0\n"


def parsed(*argv: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    command.add_arguments(parser)
    return parser.parse_args(argv)


def run_with(monkeypatch: pytest.MonkeyPatch, *argv: str) -> int:
    def fake(spec: str, options: object) -> LengthPairScorer:
        return LengthPairScorer(float(spec), unknown=frozenset({"y"}))

    monkeypatch.setattr("smt_bridge.tables.rescore.open_model", fake)
    return rescore.rescore_files(parsed(*argv, "--jobs", "1"))


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "table"
    path.write_bytes(TABLE)
    return path


def test_table_and_record_are_written(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, table: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "new.gz"
    options = ["--scorer", "0.5", "--reverse-scorer", "1", "--unknown-count", "--output", str(output), "--quiet"]
    assert run_with(monkeypatch, str(table), *options) == 0
    assert gzip.decompress(output.read_bytes()).splitlines() == [
        b"a ||| x ||| 1 2 0.367144 0.135065 1 ||| 0-0",
        b"a ||| x y ||| 1 2 0.222462 0.134795 2.71828 ||| 0-0",
        b"b ||| z ||| 1 2 0.367144 0.135065 1 ||| 0-0",
    ]
    assert capfd.readouterr() == ("", "")
    record = json.loads((tmp_path / "new.gz.json").read_bytes())
    assert list(record["columns"]) == ["p(target|source)", "p(source|target)", "exp(unknown)"]
    assert record["scores_before"] == 2
    directions = ["forward", "reverse", "forward"]
    assert list(record["columns"].values()) == [f"direction:{name}|fake:length" for name in directions]
    assert record["signatures"] == {"scorer": "fake:length", "reverse_scorer": "fake:length"}
    assert list(record["counts"].values())[:7] == [3, 3, 0, 3, 0, 4, 1]
    options = {"scorer": "0.5", "reverse_scorer": "1", "unknown_count": True, "unescape": False, "factor": None}
    assert record["options"] == {**options, "dtype": "float32", "softmax": "full"}


def summary(errors: bytes) -> list[str]:
    """Its lines without the bar's, whatever the time was."""
    said = re.sub(r"[\d,]+ pairs/s", "N pairs/s", errors.decode()).splitlines()
    return [line for line in said if line and " pairs [" not in line]


def test_summary_goes_to_stderr_and_lines_to_stdout(
    monkeypatch: pytest.MonkeyPatch, table: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    assert run_with(monkeypatch, str(table), "--scorer", "200", "--output", "-") == 0
    out, err = capfdbinary.readouterr()
    assert out.count(b"\n") == 3
    assert b" 1 2 1e-43 ||| 0-0" in out
    means = "mean log p(target|source) -466.6690; 3 probabilities floored at 1e-43"  # of 2, 3 and 2 words and ends
    unknown = "unknown to the model: 0 of 3 source words, 1 of 4 target words"  # 25 %: not more
    lines = ["3 lines, 3 distinct pairs scored, N pairs/s", means, unknown]
    assert summary(err) == [f"rescore-table: {line}" for line in lines]
    for word, share in ((b"z", 50), (b"b", 33)):  # of the target, and of the source
        table.write_bytes(TABLE.replace(word, b"y"))
        assert run_with(monkeypatch, str(table), "--scorer", "200", "--output", "-") == 0
        problem = f"warning: {share} % of the words of a side are unknown"
        remedy = "is the table tokenised, cased and escaped like the model's corpus?"
        assert summary(capfdbinary.readouterr().err)[-1] == f"rescore-table: {problem}: {remedy}"


def test_the_summary_has_the_mean_of_each_column(
    monkeypatch: pytest.MonkeyPatch, table: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert run_with(monkeypatch, str(table), "--scorer", "0.5", "--reverse-scorer", "1", "--output", "-") == 0
    out, err = capfd.readouterr()
    rows = [line.split("|||")[2].split()[2:] for line in out.splitlines()]
    direct, reverse = (sum(math.log(float(row[place])) for row in rows) / len(rows) for place in (0, 1))
    assert f"mean log p(target|source) {direct:.4f}, mean log p(source|target) {reverse:.4f}; " in err


@pytest.mark.parametrize("lines", [2, 99])
def test_dry_run_scores_the_first_lines(
    monkeypatch: pytest.MonkeyPatch, table: Path, capfdbinary: pytest.CaptureFixture[bytes], lines: int
) -> None:
    monkeypatch.setattr("smt_bridge.tables.table.WINDOW", 1)
    assert run_with(monkeypatch, str(table), "--scorer", "0.5", "--dry-run", str(lines), "--quiet") == 0
    assert capfdbinary.readouterr().out.count(b"\n") == min(lines, 3)


def test_failure_names_the_line_and_leaves_the_older_output_alone(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, table: Path
) -> None:
    output = tmp_path / "new"
    output.write_bytes(b"older")
    broken = TablePairScorer({("a", "x"): -1.0, ("a", "x y"): float("nan"), ("b", "z"): -1.0})
    monkeypatch.setattr("smt_bridge.tables.rescore.open_model", lambda spec, options: broken)
    with pytest.raises(NmtError, match="table:2"):
        rescore.rescore_files(parsed(str(table), "--scorer", "x", "--output", str(output), "--jobs", "1", "--quiet"))
    assert output.read_bytes() == b"older"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["new", "table"]


def test_an_unsorted_table_is_scored_with_a_warning(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "table").write_bytes(b"\xef\xbb\xbfa ||| x ||| 1\nb ||| see [z] ||| 1\na ||| y ||| 1\n")
    output = tmp_path / "new"
    assert run_with(monkeypatch, str(tmp_path / "table"), "--scorer", "0.5", "--output", str(output)) == 0
    said = capsys.readouterr().err
    effect = "it stays, the model does not read it, and Moses takes it for a part of the first word"
    brackets = "in a word like [this], which Moses drops; escape brackets as tokenizer.perl does"
    order = (
        "lines with the same source do not stand together; the scores will be right, but much of the work is done more"
        " than once, and Moses' binarisers want a sorted table (LC_ALL=C sort)"
    )
    problems = [f"begins with a byte order mark; {effect}", f"1 of the first 3 phrase pairs end {brackets}", order]
    assert said.splitlines()[:3] == [f"rescore-table: {tmp_path / 'table'}: {problem}" for problem in problems]
    assert [line.split(b" ||| ")[:2] for line in output.read_bytes().splitlines()] == [
        [b"\xef\xbb\xbfa", b"x"], [b"b", b"see [z]"], [b"a", b"y"],
    ]  # fmt: skip


def test_real_table_keeps_all_but_the_new_number(monkeypatch: pytest.MonkeyPatch, shared: Path, tmp_path: Path) -> None:
    path = str(shared / "moses" / "en-fr" / "phrase-table.gz")
    old, output = tmp_path / "old", str(tmp_path / "new.gz")
    old.write_bytes(b"\n".join(islice(read_lines(path), 6000)) + b"\n")
    monkeypatch.setattr("smt_bridge.tables.table.WINDOW", 2000)
    assert run_with(monkeypatch, str(old), "--scorer", "0.5", "--output", output, "--quiet") == 0
    for before, after in zip(read_lines(path), list(read_lines(output)), strict=False):
        old_fields, new_fields = before.split(b"|||"), after.split(b"|||")
        assert new_fields[2].rsplit(b" ", 2)[0] + b" " == old_fields[2]
        assert new_fields[:2] + new_fields[3:] == old_fields[:2] + old_fields[3:]
    assert len(list(read_lines(output))) == 6000
    reordering = str(shared / "moses" / "en-fr" / "reordering-table.wbe-msd-bidirectional-fe.gz")
    with pytest.raises(FormatError, match="reordering"):
        run_with(monkeypatch, reordering, "--scorer", "1", "--dry-run", "1")


FOLDER = "'no/such/folder' is not a model folder; expected DIR, DIR,DIR (an ensemble) or grpc:HOST:PORT"


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ("no/such/folder", FOLDER),
        ("tests,no/such/folder", FOLDER),
        ("", FOLDER.replace("no/such/folder", "")),
        ("grpc:localhost", "'grpc:localhost' is not an address; expected grpc:HOST:PORT or grpc:HOST:PORT/MODEL"),
        ("grpc::50051", "'grpc::50051' is not an address; expected grpc:HOST:PORT or grpc:HOST:PORT/MODEL"),
        ("grpc:host:port/m", "'grpc:host:port/m' is not an address; expected grpc:HOST:PORT or grpc:HOST:PORT/MODEL"),
    ],
)
def test_malformed_scorer_is_refused(spec: str, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tests").mkdir()
    with pytest.raises(ConfigError) as caught:
        open_model(spec)
    assert str(caught.value) == words
    assert (server_address("grpc:h:1"), server_address("grpc:h:1/m/n")) == (("h:1", ""), ("h:1", "m/n"))


def test_factors_are_seen_by_500_lines_and_three_words() -> None:
    factored, plain = b"a|b ||| c|d ||| 1", b"a ||| c ||| 1"
    for lines, seen in (
        ([factored] * 500 + [plain], True),
        ([factored] * 499 + [plain], False),
        ([factored] * 2, False),
    ):
        window = Window("t", 7, 1, b"\n".join(lines))
        with pytest.raises(FormatError, match=r"^t:7: the words have factors") if seen else nullcontext():
            rescore.check_factors(window, split_window(window), None, "no/such/folder", None)


@pytest.mark.parametrize("option", ["", "x", "-1", "1,", "0,1,0", "100", "\u00b2"])
def test_factors_that_are_none(option: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_factors(option)
    assert str(caught.value) == f"--factor must be a number from 0, or SOURCE,TARGET such as 1,0, not '{option}'"
    assert parse_factors("99,3") == (99, 3)
    with pytest.raises(ValueError, match=rf"^the word '{'x' * 40}' has no factor 1 \(counted from 0\)$"):
        pick_factor(b"a|b " + b"x" * 60, 1)


@pytest.mark.parametrize("field", ["source", "target", "both"])
def test_a_table_with_factors_needs_to_be_told_which_one_counts(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, field: str
) -> None:
    source = b"das|ART Haus|NN" if field != "target" else b"das Haus"
    target = b"the|DT big|JJ house|NN" if field != "source" else b"the big house"
    (tmp_path / "table").write_bytes((source + b" ||| " + target + b" ||| 1 2 ||| 0-0\n") * 3)
    output = tmp_path / "new"
    options = (str(tmp_path / "table"), "--scorer", "0.5", "--output", str(output), "--quiet")
    with pytest.raises(FormatError, match=r"table:1: the words have factors .* --factor"):
        run_with(monkeypatch, *options)
    assert not output.exists()
    assert run_with(monkeypatch, *options, "--factor", "0") == 0
    lines = output.read_bytes().splitlines()
    assert all(line.startswith(source + b" ||| " + target + b" ||| 1 2 0.") for line in lines)
    assert json.loads((tmp_path / "new.json").read_bytes())["options"]["factor"] == "0"
    with pytest.raises(ConfigError, match="--factor must be"):  # refused before a model is opened
        run_with(monkeypatch, *options, "--factor", "word")
    (tmp_path / "table").write_bytes(b"a|b c ||| x|y z ||| 1 |||\n" * 3)  # not all words have bars
    assert run_with(monkeypatch, *options) == 0


@pytest.mark.parametrize(("option", "texts"), [([], ("l &apos;", "&bra;")), (["--unescape"], ("l '", "["))])
def test_escapes_are_undone_on_demand(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, option: list[str], texts: tuple[str, str]
) -> None:
    (tmp_path / "table").write_text("l &apos; ||| &bra; ||| 1 |||\n")
    scorer = TablePairScorer({texts: math.log(0.5)})
    monkeypatch.setattr("smt_bridge.tables.rescore.open_model", lambda spec, options: scorer)
    files = [str(tmp_path / "table"), "--output", str(tmp_path / "new")]
    assert rescore.rescore_files(parsed(*files, "--scorer", "x", "--jobs", "1", "--quiet", *option)) == 0
    assert (tmp_path / "new").read_text() == "l &apos; ||| &bra; ||| 1 0.5 |||\n"


def test_a_reordering_table_is_no_phrase_table(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    both = b"0.6 0.2 0.2 0.846154 0.0769231 0.0769231"
    scores = [both, b"0.6 0.2 0.2", b"0.6 0.2 0.1 0.1", b"0.6 0.2 0.1 0.1 0.25 0.25 0.25 0.25", b"0.6 0.204 0.205"]
    problem = r"^table:1: this looks like a lexical reordering table: source \|\|\| target \|\|\| probabilities of"
    monkeypatch.chdir(tmp_path)
    for one in scores:
        Path("table").write_bytes(b"a ||| x ||| %b\n" % one * 5)
        with pytest.raises(FormatError, match=f"{problem} orientations, which add up to 1; give the phrase table$"):
            run_with(monkeypatch, "table", "--scorer", "1", "--output", "new")
        assert not Path("new").exists()
    for other in (b"0.7 0.2 0.2", b"0.6 0.4", b"1", both + b" ||| 0-0"):  # and fewer lines than five
        Path("table").write_bytes(b"a ||| x ||| %b\n" % other * 5)
        assert run_with(monkeypatch, "table", "--scorer", "1", "--output", "new", "--quiet") == 0
    Path("table").write_bytes(b"a ||| x ||| %b\n" % both * 4)
    assert run_with(monkeypatch, "table", "--scorer", "1", "--output", "new", "--quiet") == 0


RULES = (
    b"[X][X] de [X] ||| of [X][X] [X] ||| 1 2 ||| 0-1 1-0\r\n"
    b"a b [X] ||| x [NP-SB] ||| 1 2 ||| 0-0\r\n"
    b"[X][S] [X][X] [X] ||| [X][S] [X][X] [S] ||| 1 2 ||| 0-0 1-1\r\n"
)


@pytest.mark.parametrize("ending", [".gz", ""])
def test_rules_are_scored_in_parts_and_as_a_stream(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes], ending: str
) -> None:
    table, output = tmp_path / "rules", tmp_path / f"new{ending}"
    table.write_bytes(RULES)
    assert run_with(monkeypatch, str(table), "--scorer", "0.5", "--output", str(output)) == 0
    said = (
        f"rescore-table: {table}: a table of rules, which are scored by their words, without labels and non-terminals"
    )
    scored = "rescore-table: 3 lines, 2 distinct pairs scored, N pairs/s"
    assert summary(capfdbinary.readouterr().err)[:2] == [said, scored]
    assert b"".join(line + b"\n" for line in read_lines(str(output))) == RULES.replace(b"1 2", b"1 2 %s") % (
        b"0.367144", b"0.366411", b"1",
    )  # fmt: skip
    record = json.loads(Path(f"{output}.json").read_bytes())
    assert (record["rules"], record["scores_before"]) == (True, 2)
    assert run_with(monkeypatch, str(table), "--scorer", "0.5", "--output", "-") == 0
    assert capfdbinary.readouterr().out == b"".join(line + b"\n" for line in read_lines(str(output)))


def test_a_table_is_rescored_into_a_file_or_tried_out(error_line: Callable[..., str]) -> None:
    line = error_line(main, ["rescore-table", "table", "--scorer", "model"])
    assert "one of the arguments --output --dry-run is required" in line
