"""`smt-bridge filter-table`: which lines stay, and that they stay what they are."""

from __future__ import annotations

import dataclasses
import gzip
import itertools
import json
import weakref
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smt_bridge.commands.main import main
from smt_bridge.tables import filter as table_filter
from smt_bridge.tables import table as phrase_table
from smt_bridge.tables.filter import Limits, filter_windows
from smt_bridge.tables.table import Window
from tests.metadata_files import describe

TABLE = """a ||| x ||| 0.5 0.4 ||| 0-0 ||| 1 2 3
a ||| y ||| 0.5 0.04 ||| 0-0
a ||| z ||| 0.25  0.4 ||| 0-0 ||| 1 ||| ||| {{more}}
a ||| w ||| 0.1 0.0001 ||| 0-0
b ||| x ||| 0.001 0.9
c d ||| x y ||| 1e-3 0.2 |||
c d ||| é ||| 0.3 0.2 |||
"""
RECORD = {
    "scores_before": 1,
    "added": ["p(target|source)"],
    "options": {"input": "old"},
    "signatures": {"scorer": "nmt:x|tok:none"},
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "table").write_text(TABLE)
    describe("table", RECORD)
    return tmp_path


def filtered(*options: str, name: str = "new") -> list[str]:
    assert main(["filter-table", "table", "--output", name, *options]) == 0
    content = Path(name).read_bytes()
    lines = (gzip.decompress(content) if name.endswith(".gz") else content).decode().splitlines(keepends=True)
    assert all(line in TABLE.splitlines(keepends=True) for line in lines)
    return [line.split(" ||| ")[1] for line in lines]


@pytest.mark.parametrize(
    ("options", "kept"),
    [
        ([], ["x", "y", "z", "w", "x", "x y", "é"]),
        (["--keep", "1"], ["x", "z", "x", "x y", "é"]),  # equals stay
        (["--keep", "3"], ["x", "y", "z", "x", "x y", "é"]),
        (["--by", "1", "--keep", "1"], ["x", "y", "x", "é"]),
        (["--minimum-share", "0.05"], ["x", "y", "z", "x", "x y", "é"]),
        (["--minimum", "0.3"], ["x", "z", "x"]),
        (["--minimum", "0.3", "--by", "2"], ["x", "z", "x"]),
    ],
)
def test_the_better_targets_stay(folder: Path, options: list[str], kept: list[str]) -> None:
    assert filtered(*options) == kept
    assert filtered(*options, name="new.gz") == kept


def test_a_record_of_another_table_names_no_column(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Such as an older one: the score at the place that it tells of would be another."""
    (folder / "table").write_text("a ||| x ||| 0.5 0.9 0.1\na ||| y ||| 0.5 0.1 0.9\n")
    assert main(["filter-table", "table", "--keep", "1", "--output", "new"]) == 2
    assert "table.json: describes other content than table has; remove it" in capsys.readouterr().err
    assert not (folder / "new").exists()
    (folder / "table.json").unlink()
    assert main(["filter-table", "table", "--by", "3", "--keep", "1", "--output", "new"]) == 0
    assert (folder / "new").read_text() == "a ||| y ||| 0.5 0.1 0.9\n"


def test_what_went_is_told_and_recorded(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    filtered("--keep", "2", "--minimum", "0.3", "--minimum-share", "0.5")
    message = capsys.readouterr().err
    assert "3 of 7 pairs kept; 4 below --minimum, 0 below --minimum-share, 0 beyond --keep" in message
    assert "1 of 3 sources have no target left" in message
    record = json.loads((folder / "new.json").read_text())
    assert {name: record[name] for name in RECORD} == RECORD
    assert record["filtered"][0]["counts"]["kept"] == 3


def test_a_pipe_is_filtered_by_number(folder: Path, capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    assert main(["filter-table", "table", "--by", "2", "--keep", "4"]) == 0
    assert capsysbinary.readouterr().out.decode() == TABLE


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ("table --minimum-share 2", "--minimum-share must be between 0 and 1"),
        ("table --by 3", "table:1: has 2 scores; there is no score 3"),
        ("table --by 0", "--by counts scores from 1"),
        ("table --by p(source|target)", "has p(target|source); or give the number"),
        ("unknown --keep 1", "There is no unknown.json, so give its number"),
        ("apart --keep 1 --by 1", "apart:8: `a` stands in several places"),
        ("table --input-factor 0", "--input-factor is for --sources"),
        ("table --sources empty", "--sources empty: has no words"),
        ("table --sources table --input-factor x", "--input-factor x: expected numbers"),
        ("table --sources missing", "missing: cannot be read"),
        ("table --sources new", "new"),
    ],
)
def test_what_will_not_do_is_one_line_and_nothing_is_written(
    folder: Path, capsys: pytest.CaptureFixture[str], options: str, problem: str
) -> None:
    (folder / "unknown").write_text(TABLE)
    (folder / "apart").write_text(TABLE + "a ||| v ||| 0.1 0.2\n")
    (folder / "empty").write_text(" \n\n")
    assert main(["filter-table", *options.split(), "--output", "new"]) == 2
    assert problem in capsys.readouterr().err
    assert not (folder / "new").exists()


def test_blanks_make_no_other_source(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Moses cuts phrases at any number of spaces and tabs: these lines are of one source for it."""
    lines = ["a\tb ||| x ||| 0.5\n", "a  b ||| y ||| 0.7\n", " a b||| z ||| 0.1\n"]
    (folder / "table").write_text("".join(lines))
    (folder / "table.json").unlink()
    assert main(["filter-table", "table", "--by", "1", "--keep", "1", "--output", "new"]) == 0
    assert (folder / "new").read_text() == lines[1]
    (folder / "table").write_text("".join([*lines, "c ||| x ||| 1\n", lines[0]]))
    capsys.readouterr()
    assert main(["filter-table", "table", "--by", "1", "--keep", "1", "--output", "new"]) == 2
    assert "table:5: `a b` stands in several places" in capsys.readouterr().err


_PAIRS = st.lists(st.tuples(st.sampled_from("abcd"), st.integers(0, 9)), min_size=1, max_size=30)


@given(_PAIRS, st.integers(1, 4), st.sampled_from([0.0, 0.5]), st.integers(0, 5))
def test_it_is_brute_force(pairs: list[tuple[str, int]], keep: int, share: float, minimum: int) -> None:
    pairs = sorted(pairs, key=lambda pair: pair[0])
    lines = [f"{source} ||| t{place} ||| {score}" for place, (source, score) in enumerate(pairs)]
    expected = []
    for _, group in itertools.groupby(zip(pairs, lines, strict=True), key=lambda item: item[0][0]):
        members = list(group)
        scores = sorted((score for (_, score), _ in members), reverse=True)
        least = max(scores[:keep][-1], share * scores[0], minimum)
        expected += [line for (_, score), line in members if score >= least]
    window = Window("table", 1, 1, "\n".join(lines).encode())
    (chunk,) = filter_windows([window], Limits(0, keep, share, minimum))
    assert chunk.content.decode().splitlines() == expected
    assert chunk.counts.kept == len(expected)


def test_windows_make_no_difference(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = filtered("--keep", "1")
    monkeypatch.setattr(phrase_table, "WINDOW", 1)
    assert filtered("--keep", "1") == whole


def test_what_a_text_needs_stays(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "dev").write_text("c d e\n")
    with gzip.open(folder / "test.gz", "wt") as stream:
        stream.write("x b\r\n")
    assert filtered("--sources", "dev", "--sources", "test.gz") == ["x", "x y", "é"]
    assert "3 of 7 lines kept; 4 not in --sources" in capsys.readouterr().err
    record = json.loads((folder / "new.json").read_text())
    assert {name: record[name] for name in RECORD} == RECORD
    assert record["filtered"][0]["sources"] == ["dev", "test.gz"]
    assert filtered("--sources", "dev", name="new.gz") == ["x y", "é"]


def test_a_text_and_limits_together_are_one_after_the_other(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "text").write_text("a c d\n")
    assert filtered("--sources", "text", "--keep", "1", "--minimum", "0.3") == ["x", "z"]
    assert "2 of 7 pairs kept; 1 not in --sources, 4 below --minimum" in capsys.readouterr().err
    (folder / "text").write_text("nothing\n")
    assert filtered("--sources", "text", "--keep", "1") == []
    assert "no source occurs in the text" in capsys.readouterr().err


def test_other_tables_are_filtered_by_a_text(folder: Path) -> None:
    (folder / "text").write_text("le|D chat|N\n")
    (folder / "reordering").write_text("chat ||| cat ||| 0.2 0.3 0.5\nchien ||| dog ||| 0.2 0.3 0.5\n" * 3)
    command = ["filter-table", "reordering", "--output", "new", "--sources", "text", "--quiet"]
    assert main([*command, "--input-factor", "0"]) == 0
    assert (folder / "new").read_text() == "chat ||| cat ||| 0.2 0.3 0.5\n" * 3
    (folder / "rules").write_text("le [X][X] [X] ||| the [X][X] [X] ||| 1 0.5\nchat [X] ||| cat [X] ||| 1 0.25\n")
    command = ["filter-table", "rules", "--output", "new", "--sources", "text", "--input-factor", "0", "--by", "2"]
    assert main([*command, "--minimum", "0.3"]) == 0
    assert (folder / "new").read_text() == "le [X][X] [X] ||| the [X][X] [X] ||| 1 0.5\n"


class WatchedRows(list[list[bytes]]):
    """Rows that a weak reference can watch."""


def test_one_window_at_a_time_is_in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """What was made of a window is gone when the next one is read."""
    made: list[weakref.ref[object]] = []
    split = table_filter.split_window

    def splitting(window: phrase_table.Window) -> phrase_table.Fields:
        columns = split(window)
        columns = dataclasses.replace(columns, rows=WatchedRows(columns.rows))
        made.append(weakref.ref(columns.rows))
        return columns

    def watched() -> Iterator[phrase_table.Window]:
        for number in range(3):
            assert len(made) == number
            assert not any(reference() is not None for reference in made)
            yield phrase_table.Window("table", number + 1, 1, b"a%d ||| b ||| 0.5" % number)

    monkeypatch.setattr(table_filter, "split_window", splitting)
    assert len(list(table_filter.filter_windows(watched(), table_filter.Limits(0, 1)))) == 3


HASHES = ["TargetColl.dat", "TargetVocab.dat", "Alignments.dat", "probing_hash.dat", "source_vocabids", "config"]
ON_DISK = ["Misc.dat", "Vocab.dat", "Source.dat", "TargetColl.dat", "TargetInd.dat"]


@pytest.mark.parametrize(
    ("files", "kind"),
    [
        (HASHES, "ProbingPT), in which source phrases are hashes without their words;"),
        ([], "PhraseDictionaryCompact), in which source phrases are fingerprints without their words;"),
        (ON_DISK, "PhraseDictionaryOnDisk);"),
    ],
)
def test_binarised_tables_are_refused(
    folder: Path, files: list[str], kind: str, capsys: pytest.CaptureFixture[str]
) -> None:
    table = Path("made" if files else "table.minphr")
    for path in [table / name for name in files] or [table]:
        path.parent.mkdir(exist_ok=True)
        path.touch()
    assert main(["filter-table", str(table), "--by", "1", "--keep", "1", "--output", "small"]) == 2
    assert f"is a binarised table ({kind} give the text that it was made from" in capsys.readouterr().err
    assert not Path("small").exists()
