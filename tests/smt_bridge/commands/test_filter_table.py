"""`smt-bridge filter-table`: which lines stay, and that they stay what they are."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from smt_bridge.commands.main import main
from tests.metadata_files import describe

TABLE = """a ||| x ||| 0.5 0.4 ||| 0-0 ||| 1 2 3
a ||| z ||| 0.25  0.4 ||| 0-0 ||| 1 ||| ||| {{more}}
b ||| x ||| 0.001 0.9
c d ||| x y ||| 1e-3 0.2 |||
c d ||| é ||| 0.3 0.2 |||
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "table").write_text(TABLE)
    describe("table", {"scores_before": 1, "added": ["p(target|source)"]})
    return tmp_path


def filtered(*options: str, name: str = "new") -> list[str]:
    assert main(["filter-table", "table", "--output", name, *options]) == 0
    content = Path(name).read_bytes()
    lines = (gzip.decompress(content) if name.endswith(".gz") else content).decode().splitlines(keepends=True)
    assert all(line in TABLE.splitlines(keepends=True) for line in lines)
    return [line.split(" ||| ")[1] for line in lines]


def test_what_a_text_needs_stays(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "dev").write_text("c d e\n")
    with gzip.open(folder / "test.gz", "wt") as stream:
        stream.write("x b\r\n")
    assert filtered("--sources", "dev", "--sources", "test.gz") == ["x", "x y", "é"]
    assert capsys.readouterr().err.endswith("filter-table: 3 of 5 lines kept; 2 not in --sources\n")
    new, old = (json.loads((folder / name).read_text()) for name in ("new.json", "table.json"))
    assert new.pop("filtered") == [{"input": "table", "sources": ["dev", "test.gz"], "lines": 5, "kept": 3}]
    assert new.pop("file") != old.pop("file")
    assert new == old
    assert main(["filter-table", "new", "--sources", "dev", "--output", "again"]) == 0
    more = {"input": "new", "sources": ["dev"], "lines": 3, "kept": 2}
    steps = [{"input": "table", "sources": ["dev", "test.gz"], "lines": 5, "kept": 3}, more]
    assert json.loads((folder / "again.json").read_text())["filtered"] == steps
    assert filtered("--sources", "dev", name="new.gz") == ["x y", "é"]
    (folder / "dev").write_text("nothing\n")
    assert filtered("--sources", "dev") == []
    remedy = "is it tokenised, cased and escaped like the table?"
    warning = f"filter-table: warning: no source occurs in the text: {remedy}\n"
    assert capsys.readouterr().err.endswith(f"filter-table: 0 of 5 lines kept; 5 not in --sources\n{warning}")


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ("table --sources empty", "--sources empty: has no words, so that nothing of the table would be left"),
        ("table --sources missing", "missing: cannot be read"),
        ("table --sources new", "new"),
        ("other --sources table", "other.json: describes other content than other has; remove it"),
    ],
)
def test_what_will_not_do_is_one_line_and_nothing_is_written(
    folder: Path, error_line: Callable[..., str], options: str, problem: str
) -> None:
    (folder / "other").write_text(TABLE[1:])
    (folder / "other.json").write_bytes((folder / "table.json").read_bytes())
    (folder / "empty").write_text(" \n\n")
    assert problem in error_line(main, ["filter-table", *options.split(), "--output", "new"])
    assert not (folder / "new").exists()


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
    folder: Path, files: list[str], kind: str, error_line: Callable[..., str]
) -> None:
    table = Path("made" if files else "table.minphr")
    for path in [table / name for name in files] or [table]:
        path.parent.mkdir(exist_ok=True)
        path.touch()
    line = error_line(main, ["filter-table", str(table), "--sources", "table", "--output", "small"])
    assert f"is a binarised table ({kind} give the text that it was made from" in line
    assert not Path("small").exists()
