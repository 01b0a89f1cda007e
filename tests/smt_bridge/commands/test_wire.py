"""`smt-bridge wire` on files."""

from __future__ import annotations

import argparse
import gzip
import os
import re
import tempfile
from pathlib import Path

import pytest

from nmt_core.base.errors import NmtError
from nmt_core.files import pack
from smt_bridge.commands import wire as command
from smt_bridge.commands.main import main
from smt_bridge.tables.wire import binarising_command, wire
from tests.metadata_files import describe

pytestmark = pytest.mark.skipif(" " in tempfile.gettempdir(), reason="moses.ini holds no path with a blank")

INI = """[feature]
{kind} name=TM0 num-features=2 path=old.gz input-factor=0,1 output-factor=0
[weight]
TM0= 0.1 0.2
"""
MEMORY = INI.format(kind="PhraseDictionaryMemory")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "moses.ini").write_text(MEMORY)
    (tmp_path / "new").write_text("a ||| b ||| 1 2 0.5 1 ||| 0-0\n")
    return tmp_path


def wired(*options: str, table: str = "new") -> str:
    parser = argparse.ArgumentParser()
    command.add_arguments(parser)
    assert wire(parser.parse_args(["moses.ini", "--table", table, "--output", "new.ini", *options])) == 0
    return Path("new.ini").read_text()


def test_table_is_wired_in(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    expected = MEMORY.replace("num-features=2", "num-features=4")
    expected = expected.replace("0.1 0.2", "0.1 0.2 0.2 0.2")
    assert wired("--added", "2") == expected.replace("old.gz", str(folder / "new"))
    tune = "to tune, give mert-moses.pl a new --working-dir: the old one remembers the old number of weights; and"
    filtering = "in filter-model-given-input.pl say -Binarizer"
    lines = [
        "TM0 now has 4 scores (2 and 2 new, weights 0.2 0.2)",
        "to binarise, give the number of scores, or the decoder crashes:",
        "  processPhraseTableMin -in new -out new -nscores 4",
        "  CreateProbingPT --input-pt new --output-dir new.probing --num-scores 4",
        "  CreateOnDiskPt 2 1 4 20 2 new new.ondisk",
        f'{tune} {filtering} "CreateProbingPT --num-scores 4"',
    ]
    assert capsys.readouterr().err == "".join(f"wire: {line}\n" for line in lines)
    line = "LexicalReordering name=LR0 num-features=6 type=wbe-msd-bidirectional-fe-allff path=reordering\n"
    (folder / "moses.ini").write_text(MEMORY.replace("[feature]\n", f"[feature]\n{line}"))
    wired("--added", "2")
    programs = (
        "processPhraseTableMin, which takes the number of scores (not CreateProbingPT: processLexicalTableMin, for the"
        " reordering table, would refuse --num-scores)"
    )
    said = capsys.readouterr().err.splitlines()
    assert said[0] == "wire: reordering of LR0 is not found and stays as it is; correct it"
    assert said[-1] == f"wire: {tune} {filtering} {programs}"


def test_record_beside_the_table_says_what_was_added(folder: Path) -> None:
    record = {"scores_before": 2, "added": ["p(target|source)", "exp(unknown)"]}
    describe(folder / "new", record)
    assert "TM0= 0.1 0.2 0.2 0\n" in wired()
    with pytest.raises(NmtError, match=r"^--added is 1, but new.json says that 2 were added \(p\(target.source\), exp"):
        wired("--added", "1")
    assert "TM0= 0.1 0.2 0.2 0\n" in wired("--added", "2")
    for edited, problem in (
        ({"scores_before": 3}, r"new\.json: says 3 scores and 2 more, but the lines have 4; rescore the table again"),
        ({"added": []}, "is not metadata of `smt-bridge rescore-table`"),
        ({"scores_before": None}, "is not metadata of `smt-bridge rescore-table`"),
    ):
        describe(folder / "new", record | edited)
        with pytest.raises(NmtError, match=problem):
            wired()
    (folder / "new.json").write_text("[]")
    with pytest.raises(NmtError, match="is not metadata"):
        wired()


def test_weights_are_taken_from_the_option(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert "TM0= 0.1 0.2 0.3 -0.4\n" in wired("--added", "2", "--weights", "0.3", "-0.4")
    assert main(["wire", "moses.ini", "--table", "new", "--added", "2", "--weights", "-1e-5", "-.5E-3"]) == 0
    assert "TM0= 0.1 0.2 -1e-05 -0.0005\n" in capfd.readouterr().out


@pytest.mark.parametrize(
    ("options", "table", "problem"),
    [
        ("", "new", "how many columns were added to new? There is no new.json, so say it with --added N"),
        ("--added 1", "new", "new has 4 scores, but TM0 has num-features=2 and 1 were added, which makes 3"),
        ("--added 2", "single", "single has 1 score, but TM0"),
        ("--added 2", "empty", "empty: the file is empty"),
        ("--added 2 --weights 0.3", "new", "--weights has 1 number for 2 added columns"),
        ("--added 1 --weights nan", "new", "--weights must be finite numbers up to 3.4e+38, as Moses reads them"),
        ("--added 1 --weights 1e39", "new", "--weights must be finite numbers up to 3.4e+38, as Moses reads them"),
        ("--added 2", "-", "--table needs a file, which the ini can name"),
        ("--added 2", "/dev/stdin", "--table needs a file, which the ini can name"),
        ("--added 2", "fifo", "--table needs a file, which the ini can name"),
        ("--added 2", "new.zst", "new.zst: is packed with zstd, which Moses does not read; pack it with gzip, as *.gz"),
        ("--added 2", "new.xz", "new.xz: is packed with xz, which Moses does not read; pack it with gzip, as *.gz"),
        ("--added 2", "packed", "packed: is packed with gzip, which Moses tells by a name"),
        ("--added 2", "made", "--table made: is a folder; give the text"),
    ],
)
def test_what_cannot_be_wired_in_is_refused_and_nothing_is_written(
    folder: Path, options: str, table: str, problem: str
) -> None:
    os.mkfifo("fifo")
    content = Path("new").read_bytes()
    Path("single").write_text("a ||| b ||| 0.5 ||| 0-0\n")
    Path("empty").touch()
    Path("new.zst").write_bytes(pack(content, ".zst"))
    Path("new.xz").write_bytes(pack(content, ".xz"))
    Path("packed").write_bytes(gzip.compress(content))
    Path("made").mkdir()
    for name in ("Misc.dat", "Source.dat", "TargetColl.dat", "TargetInd.dat", "Vocab.dat"):
        Path("made", name).touch()
    with pytest.raises(NmtError, match=re.escape(problem)):
        wired(*options.split(), table=table)
    assert not Path("new.ini").exists()


@pytest.mark.parametrize(
    ("kind", "path"),
    [("PhraseDictionaryCompact", "new"), ("ProbingPT", "new.probing"), ("PhraseDictionaryOnDisk", "new.ondisk")],
)
def test_binary_table_is_to_be_made_again(
    folder: Path, capsys: pytest.CaptureFixture[str], kind: str, path: str
) -> None:
    (folder / "new.gz").write_bytes((folder / "new").read_bytes())
    assert f"num-features=4 path={folder}/new.gz input" in wired("--added", "2", table="new.gz")  # a table of text
    capsys.readouterr()
    (folder / "moses.ini").write_text(INI.format(kind=kind))
    assert f"num-features=4 path={folder / path} input" in wired("--added", "2", table="new.gz")
    command = binarising_command(kind, "new.gz", scores=4, factors=(2, 1))
    line = f"wire: {kind} reads a binarised table, so make it again: {command}"
    assert capsys.readouterr().err.splitlines()[1] == line


def test_weights_that_were_missing_are_mentioned(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "moses.ini").write_text(MEMORY.replace("TM0= 0.1 0.2\n", ""))
    assert "TM0= 1 1 0.2 0.2\n" in wired("--added", "2")
    said = "wire: TM0 had no weights; the old scores got 1, which Moses took for them"
    assert capsys.readouterr().err.splitlines()[0] == said


GROUP = """[feature]
PhraseDictionaryMemory name=TM0 num-features=2 path=old.gz tuneable=false
PhraseDictionaryMemory name=TM1 num-features=1 path=other.gz tuneable=false
{kind} name=G0 {option}=TM0,TM1 num-features=3
[weight]
TM0= 0 0
G0= 0.1 0.2 0.3
"""


def _group(kind: str, option: str) -> str:
    return GROUP.format(kind=f"PhraseDictionary{kind}", option=option)


def _single(line: str) -> str:
    return f"[feature]\n{line}\n[weight]\nTM0= 1 1\n"


@pytest.mark.parametrize(
    ("ini", "name", "said"),
    [
        (_group("Group", "members"), "TM0", "G0 (PhraseDictionaryGroup) combines TM0 with other tables"),
        (_group("Group", "members"), "G0", "combines TM0, TM1 and has no file of its own"),
        (_group("Group", "members"), None, "G0 (PhraseDictionaryGroup) combines TM0 with other tables"),
        (_group("MultiModel", "components"), "TM1", "combines TM1 with other tables"),
        (_single("PhraseDictionaryTransliteration name=TM0 path=x"), None, "has no file of scores"),
        (_single("Mmsapt name=TM0 path=x L1=de L2=en"), None, "has no file of scores"),
        (_single("PhraseDictionaryFuzzyMatch name=TM0 num-features=2 path=x"), None, "has no file of scores"),
        ("[ttable-file]\n0 0 0 2 old.gz\n[weight-t]\n1\n1\n", None, "before 2013"),
        *[
            (
                f"{MEMORY}[{section}]\nLM0= 1 TM0= 3 4\n",
                None,
                f"moses.ini:6: [{section}] has weights of TM0 for the columns it has now; put them into [weight] first",
            )
            for section in ("weight-overwrite", "alternate-weight-setting")
        ],
    ],
)
def test_an_ini_whose_table_cannot_grow_is_refused_and_nothing_is_written(
    folder: Path, ini: str, name: str | None, said: str
) -> None:
    (folder / "moses.ini").write_text(ini)
    with pytest.raises(NmtError, match=re.escape(said)):
        wired("--added", "2", *(["--feature", name] if name else []))
    assert not Path("new.ini").exists()


def test_relative_paths_are_found_from_any_folder(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "system").mkdir()
    for name in ("lm.arpa", "sparse"):
        (folder / "system" / name).write_text("x 1\n")
    unfound = "Generation name=G path=nowhere\nGeneration name=H path=/no/where\n"
    more = f"[feature]\nKENLM name=LM0 path=lm.arpa\n{unfound}[weight-file]\nsparse # tuned\n"
    ini = (MEMORY + more).replace("\n", "\r\n")
    (folder / "moses.ini").unlink()
    (folder / "system" / "moses.ini").write_bytes(ini.encode())
    assert main(["wire", "system/moses.ini", "--table", "new", "--added", "2", "--output", "new.ini"]) == 0
    found = Path("new.ini").read_bytes().decode()
    assert f"LM0 path={folder}/system/lm.arpa\r\n" in found
    assert f"[weight-file]\r\n{folder}/system/sparse # tuned\r\n" in found
    assert "G path=nowhere\r\n" in found
    said = capsys.readouterr().err
    assert "nowhere of G is not found and stays as it is" in said and said.count("is not found") == 1
    (folder / "system" / "sparse").unlink()
    assert main(["wire", "system/moses.ini", "--table", "new", "--added", "2"]) == 0
    assert "wire: sparse of [weight-file] is not found and stays as it is; correct it" in capsys.readouterr().err


CHART = """[search-algorithm]
3
[feature]
{kind} name=TM0 num-features=2 path=rule-table.gz input-factor=0 output-factor=0 table-limit=20
PhraseDictionaryMemory name=TM1 num-features=1 path=glue-grammar input-factor=0 output-factor=0 tuneable=true
[weight]
TM0= 0.1 0.2
TM1= 1.0
"""
RULE = "der [X][X] [X] ||| the [X][X] [S] ||| 1 2 0.5 ||| 0-0 1-1\n"


@pytest.mark.parametrize("kind", ["PhraseDictionaryMemory", "PhraseDictionaryScope3", "RuleTable"])
def test_a_table_of_rules_is_wired_in_beside_its_glue_grammar(
    folder: Path, capsys: pytest.CaptureFixture[str], kind: str
) -> None:
    (folder / "moses.ini").write_text(CHART.format(kind=kind))
    (folder / "new").write_text(RULE)
    (folder / "glue-grammar").write_text("<s> [X] ||| <s> [S] ||| 1 ||| ||| 0\n")
    expected = CHART.format(kind=kind).replace("num-features=2", "num-features=3").replace("0.1 0.2", "0.1 0.2 0.2")
    expected = expected.replace("path=rule-table.gz", f"path={folder / 'new'}")
    assert wired("--added", "1") == expected.replace("path=glue-grammar", f"path={folder / 'glue-grammar'}")
    said = capsys.readouterr().err
    assert "CreateOnDiskPt 1 1 3 20 2 new new.ondisk" in said
    assert "processPhraseTableMin" not in said
    assert "CreateProbingPT" not in said


@pytest.mark.parametrize(
    ("kind", "scores", "expected"),
    [
        ("PhraseDictionaryCompact", 5, "processPhraseTableMin -in 'a b.gz' -out 'a b' -nscores 5"),
        ("PhraseDictionaryCompact", 3, "processPhraseTableMin -in 'a b.gz' -out 'a b' -nscores 3"),
        ("PhraseDictionaryCompact", 2, "processPhraseTableMin -in 'a b.gz' -out 'a b' -nscores 2 -rankscore 1"),
        ("PhraseDictionaryOnDisk", 1, "CreateOnDiskPt 1 1 1 20 0 'a b.gz' 'a b'.ondisk"),
        ("PhraseDictionaryBinary", 5, "processPhraseTable -ttable 0 0 'a b.gz' -out 'a b' -nscores 5"),
    ],
)
def test_the_command_is_one_that_a_shell_takes(kind: str, scores: int, expected: str) -> None:
    assert binarising_command(kind, "a b.gz", scores=scores) == expected
