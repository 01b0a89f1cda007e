"""`smt-bridge wire` on files."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import pytest

from nmt_core.errors import ConfigError, NmtError
from smt_bridge.commands import wire as command

INI = """[feature]
{kind} name=TM0 num-features=2 path=old.gz input-factor=0,1 output-factor=0
[weight]
TM0= 0.1 0.2
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "moses.ini").write_text(INI.format(kind="PhraseDictionaryMemory"))
    (tmp_path / "new").write_text("a ||| b ||| 1 2 0.5 1 ||| 0-0\n")
    return tmp_path


def wired(*options: str, table: str = "new") -> str:
    parser = argparse.ArgumentParser()
    command.add_arguments(parser)
    assert command.run(parser.parse_args(["moses.ini", "--table", table, "--output", "new.ini", *options])) == 0
    return Path("new.ini").read_text()


def test_table_is_wired_in(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    expected = INI.format(kind="PhraseDictionaryMemory").replace("num-features=2", "num-features=4")
    assert wired("--added", "2") == expected.replace("old.gz", "new").replace("0.1 0.2", "0.1 0.2 0.2 0.2")
    said = capsys.readouterr().err
    assert "processPhraseTableMin -in new -out new -nscores 4" in said
    assert "CreateProbingPT --input-pt new --output-dir new.probing --num-scores 4" in said
    assert "CreateOnDiskPt 2 1 4 20 2 new new.ondisk" in said
    assert "--working-dir" in said


def test_record_beside_the_table_says_what_was_added(folder: Path) -> None:
    (folder / "new.json").write_text(json.dumps({"added": ["p(target|source)", "exp(unknown)"]}))
    assert "TM0= 0.1 0.2 0.2 0\n" in wired()
    with pytest.raises(NmtError, match=r"--added is 1, but new\.json says that 2"):
        wired("--added", "1")


def test_weights_are_taken_from_the_option(folder: Path) -> None:
    assert "TM0= 0.1 0.2 0.3 -0.4\n" in wired("--added", "2", "--weights", "0.3", "-0.4")
    with pytest.raises(ConfigError, match="1 numbers for 2"):
        wired("--added", "2", "--weights", "0.3")
    with pytest.raises(ConfigError, match="finite"):
        wired("--added", "1", "--weights", "nan")


def test_wrong_number_of_scores_names_both(folder: Path) -> None:
    with pytest.raises(NmtError, match=r"new has 4 scores, but TM0 has num-features=2 and 1 were added, which makes 3"):
        wired("--added", "1")
    assert not Path("new.ini").exists()


def test_unknown_number_of_columns_is_asked_for(folder: Path) -> None:
    with pytest.raises(ConfigError, match="--added N"):
        wired()
    with pytest.raises(ConfigError, match="at least 1"):
        wired("--added", "0")
    (folder / "new.json").write_text("[]")
    with pytest.raises(NmtError, match="not a record"):
        wired()


def test_empty_table_is_refused(folder: Path) -> None:
    (folder / "new").write_text("")
    with pytest.raises(NmtError, match="empty"):
        wired("--added", "2")


@pytest.mark.parametrize(
    ("kind", "path"),
    [("PhraseDictionaryCompact", "new"), ("ProbingPT", "new.probing"), ("PhraseDictionaryOnDisk", "new.ondisk")],
)
def test_binary_table_is_to_be_made_again(
    folder: Path, capsys: pytest.CaptureFixture[str], kind: str, path: str
) -> None:
    (folder / "moses.ini").write_text(INI.format(kind=kind))
    (folder / "new.gz").write_bytes((folder / "new").read_bytes())
    assert f"num-features=4 path={path} input" in wired("--added", "2", table="new.gz")
    assert f"{kind} reads a binarised table, so make it again: " in capsys.readouterr().err


def test_weights_that_were_missing_are_mentioned(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "moses.ini").write_text(INI.format(kind="PhraseDictionaryMemory").replace("TM0= 0.1 0.2\n", ""))
    assert "TM0= 1 1 0.2 0.2\n" in wired("--added", "2")
    assert "had no weights" in capsys.readouterr().err
