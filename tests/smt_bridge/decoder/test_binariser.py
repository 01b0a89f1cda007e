"""`rescore-table --binarise`: Moses' program is asked for what it needs, and a failure leaves nothing half made."""

from __future__ import annotations

import io
import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from nmt_core.errors import NmtError
from smt_bridge.commands.main import main
from smt_bridge.decoder.binariser import binarise, binarised, binarising_command, check_replaced
from smt_bridge.formats.feature_kinds import binarised_kind
from tests.child_programs import wait_until_ended, wait_until_started
from tests.fakes import LengthPairScorer

TABLE = b"a ||| x ||| 1 2 ||| 0-0\na ||| x y ||| 1 2 ||| 0-0\nb ||| z ||| 1 2 ||| 0-0\n"
PROGRAMS = {
    "processPhraseTableMin": 'echo made > "$4.minphr"',
    "CreateProbingPT": (
        'mkdir "$4"; for f in TargetColl.dat TargetVocab.dat Alignments.dat probing_hash.dat source_vocabids config;'
        ' do touch "$4/$f"; done'
    ),
    "CreateOnDiskPt": 'mkdir "$7"; for f in Misc Source TargetColl TargetInd Vocab; do touch "$7/$f.dat"; done',
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with a table, and programs that write their arguments down and what a binary table has."""
    monkeypatch.chdir(tmp_path)
    Path("table").write_bytes(TABLE)
    os.mkdir("bin")
    for name, made in PROGRAMS.items():
        program = Path("bin") / name
        program.write_text(f'#!/bin/sh\necho {name} "$@" >> {tmp_path}/asked\n{made}\n')
        program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}/bin:{os.environ['PATH']}")
    monkeypatch.setattr("smt_bridge.scorers.open_scorer", lambda spec, options: LengthPairScorer(float(spec)))
    return tmp_path


def rescore(*more: str) -> int:
    return main(["rescore-table", "table", "--scorer", "0.5", "--jobs", "1", "--output", "new table.gz", *more])


def asked_for() -> list[str]:
    """What the programs were called with; the temporary folder that they write into is FOLDER."""
    return re.sub(r"\S*/\.new table\S*\.hybridmt\.tmp", "FOLDER", Path("asked").read_text()).splitlines()


def _made(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if "new" in path.name)


@pytest.mark.parametrize(
    ("name", "made", "kind", "asked"),
    [
        (
            "compact",
            "new table.minphr",
            "PhraseDictionaryCompact",
            "processPhraseTableMin -in new table.gz -out FOLDER/new table -nscores 3",
        ),
        (
            "probing",
            "new table.probing",
            "ProbingPT",
            "CreateProbingPT --input-pt new table.gz --output-dir FOLDER/new table.probing --num-scores 3",
        ),
        (
            "ondisk",
            "new table.ondisk",
            "PhraseDictionaryOnDisk",
            "CreateOnDiskPt 1 1 3 20 2 new table.gz FOLDER/new table.ondisk",
        ),
    ],
)
def test_the_table_is_made_with_the_right_number_of_scores(
    folder: Path, name: str, made: str, kind: str, asked: str, capsys: pytest.CaptureFixture[str]
) -> None:
    for _ in range(2):  # an older one is replaced
        assert rescore("--binarise", name) == 0
        assert "made of new table.gz, with 3 scores" in capsys.readouterr().err
        assert binarised_kind(made) == kind
    assert asked_for() == [asked, asked]
    assert _made(folder) == sorted(["new table.gz", "new table.gz.json", made])


@pytest.mark.parametrize(
    ("name", "asked"),
    [
        ("compact", "processPhraseTableMin -in new table.gz -out FOLDER/new table -nscores 2 -rankscore 1"),
        ("ondisk", "CreateOnDiskPt 1 1 2 20 1 new table.gz FOLDER/new table.ondisk"),
    ],
)
def test_a_table_of_two_scores_is_ranked_by_one_that_it_has(folder: Path, name: str, asked: str) -> None:
    """Where the third score is missing, Moses' programs read behind the scores or stop."""
    Path("table").write_bytes(TABLE.replace(b"1 2", b"1"))
    assert rescore("--binarise", name, "--quiet") == 0
    assert asked_for() == [asked]


def test_factors_are_counted(folder: Path) -> None:
    Path("table").write_bytes(b"a|X|b ||| x|Y ||| 1 2 ||| 0-0\n")
    assert rescore("--binarise", "ondisk", "--factor", "0", "--quiet") == 0
    assert Path("asked").read_text().startswith("CreateOnDiskPt 3 2 3 20 2 ")


def test_a_missing_program_is_said_before_the_work(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    os.unlink("bin/CreateProbingPT")
    assert rescore("--binarise", "probing") == 2
    errors = capsys.readouterr().err
    assert "needs Moses' program CreateProbingPT, which is not on the PATH" in errors and errors.count("\n") == 1
    assert not Path("new table.gz").exists()


def test_options_that_do_not_go_together_are_refused(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert rescore("--binarise", "probing", "--shards", "1-2") == 2
    assert "without --shards" in capsys.readouterr().err
    for output in ("-", "table.xz", "/dev/null", "/dev/stdout"):
        command = ["rescore-table", "table", "--scorer", "0.5", "--output", output, "--binarise", "compact"]
        assert main(command) == 2
        assert "--binarise needs --output to be a file" in capsys.readouterr().err


def test_a_table_that_is_not_sorted_is_refused(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """CreateProbingPT and CreateOnDiskPt lose pairs; before the work, where the table is a file."""
    lines = [b"a ||| x ||| 1 2 ||| 0-0\n", b"a b ||| x ||| 1 2 ||| 0-0\n"]  # a bar comes after a blank
    Path("table").write_bytes(b"".join(lines))
    assert rescore("--binarise", "probing") == 2
    assert "table:2: `a b` stands behind a larger source" in capsys.readouterr().err
    assert not Path("new table.gz").exists()
    with open("table", "rb") as stream:
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(stream))
        command = ["rescore-table", "-", "--scorer", "0.5", "--jobs", "1", "--output", "new.gz"]
        assert main([*command, "--binarise", "probing", "--quiet"]) == 2
    assert "new.gz:2: `a b` stands behind a larger source" in capsys.readouterr().err
    assert not Path("asked").exists() and Path("new.gz").exists()
    for phrases in (b"b  c ||| x", b"b ||| x\ty"):
        Path("table").write_bytes(b"".join([*reversed(lines), phrases + b" ||| 1 2 ||| 0-0\n"]))
        capsys.readouterr()
        assert rescore("--binarise", "probing") == 2
        assert "table:3: has a phrase with several blanks or a tab between its words" in capsys.readouterr().err
    Path("table").write_bytes(b"".join(reversed(lines)))
    assert rescore("--binarise", "probing", "--quiet") == 0


@pytest.mark.parametrize(
    ("name", "there", "words"),
    [
        ("ondisk", ["thesis.txt"], "is there already and is no table of CreateOnDiskPt (without Misc.dat)"),
        ("ondisk", [], "is there already and is no table of CreateOnDiskPt (without Misc.dat)"),
        ("probing", ["config"], "is there already and is no table of CreateProbingPT (without TargetColl.dat)"),
        ("compact", ["config"], "is there already and is a folder"),
    ],
)
def test_a_folder_of_something_else_is_not_replaced(
    folder: Path, name: str, there: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = Path(binarised(name, "new table.gz"))
    path.mkdir()
    for file in there:
        (path / file).write_text("mine")
    assert rescore("--binarise", name) == 2
    errors = capsys.readouterr().err
    assert errors.count("\n") == 1
    assert f"{path}: {words}; move it away, or choose another --output" in errors
    assert sorted(os.listdir(path)) == sorted(there) and not Path("new table.gz").exists()


@pytest.mark.parametrize("name", ["ondisk", "probing"])
def test_a_table_with_files_of_somebody_else_is_not_replaced(
    folder: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert rescore("--binarise", name, "--quiet") == 0
    path = Path(binarised(name, "new table.gz"))
    (path / "notes").mkdir()
    assert rescore("--binarise", name) == 2
    program = {"ondisk": "CreateOnDiskPt", "probing": "CreateProbingPT"}[name]
    assert f"{path}: is there already and holds more than {program} writes (notes); move" in capsys.readouterr().err
    assert (path / "notes").is_dir()
    (path / "notes").rmdir()
    assert rescore("--binarise", name, "--quiet") == 0


def test_a_file_where_the_folder_would_be_is_not_replaced(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("new table.ondisk").write_text("mine")
    assert rescore("--binarise", "ondisk") == 2
    assert "new table.ondisk: is there already and is no folder; move it away" in capsys.readouterr().err
    assert Path("new table.ondisk").read_text() == "mine" and not Path("new table.gz").exists()


def test_what_moses_itself_makes_is_replaced(shared: Path, tmp_path: Path) -> None:
    for name in ("ondisk", "probing"):
        shutil.copytree(shared / "moses" / "binarised" / name, tmp_path / f"t.{name}")
        check_replaced(name, str(tmp_path / "t.gz"))


@pytest.mark.parametrize("harm", ["echo no room >&2; exit 3", "exit 0", 'mkdir "$4"; touch "$4/config"; kill -9 $$'])
def test_a_failure_leaves_the_older_table_and_the_text(
    folder: Path, harm: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert rescore("--binarise", "probing", "--quiet") == 0
    Path("new table.probing/config").write_text("older")
    Path("bin/CreateProbingPT").write_text(f"#!/bin/sh\n{harm}\n")
    assert rescore("--binarise", "probing", "--quiet") == 2
    errors = capsys.readouterr().err
    assert "new table.gz: is complete, but CreateProbingPT failed" in errors and errors.count("\n") == 1
    assert (
        "by hand: CreateProbingPT --input-pt 'new table.gz' --output-dir 'new table'.probing --num-scores 3" in errors
    )
    assert Path("new table.probing/config").read_text() == "older"
    assert _made(folder) == ["new table.gz", "new table.gz.json", "new table.probing"]


@pytest.fixture
def endless(folder: Path) -> str:
    """A program that writes a part of its table and goes on for ever; the call that starts it."""
    script = f'#!/bin/sh\nmkdir "$4"; touch "$4/config"; echo $$ > {folder}/process; exec sleep 1000\n'
    Path("bin/CreateProbingPT").write_text(script)
    Path("new.gz").write_bytes(b"")
    interrupted = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)"  # ignored in the background
    call = "from smt_bridge.decoder.binariser import binarise; binarise('probing', 'new.gz', scores=3, factors=(1, 1))"
    return f"{interrupted}; {call}"


@pytest.mark.parametrize("ending", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGKILL])
def test_the_program_ends_with_the_command(folder: Path, endless: str, ending: signal.Signals) -> None:
    with subprocess.Popen([sys.executable, "-c", endless], stderr=subprocess.DEVNULL) as process:
        program = wait_until_started(folder / "process")
        process.send_signal(ending)
    wait_until_ended(program)
    assert ending == signal.SIGKILL or _made(folder) == ["new.gz"]
    Path("bin/CreateProbingPT").write_text(f"#!/bin/sh\n{PROGRAMS['CreateProbingPT']}\n")
    assert binarise("probing", "new.gz", scores=3, factors=(1, 1)) == "new.probing"
    assert _made(folder) == ["new.gz", "new.probing"]


@pytest.mark.parametrize("name", ["compact", "probing"])
def test_a_link_stays_and_the_table_lies_where_it_leads_to(folder: Path, name: str) -> None:
    """As where binary tables are on a larger disk."""
    Path("new.gz").write_bytes(b"")
    Path("large").mkdir()
    link, place = Path(binarised(name, "new.gz")), Path("large/other")
    binarise(name, "new.gz", scores=3, factors=(1, 1))
    link.rename(place)
    link.symlink_to(place)
    before = place.stat().st_ino
    assert binarise(name, "new.gz", scores=3, factors=(1, 1)) == str(link)
    assert link.is_symlink() and place.stat().st_ino != before
    assert [path.name for path in place.parent.iterdir()] == ["other"]


def test_a_table_that_is_replaced_meanwhile_does_not_get_the_binary_one_of_the_older(folder: Path) -> None:
    Path("new.gz").write_bytes(b"older")
    with open("bin/CreateProbingPT", "a") as program:
        program.write(f"echo newer > {folder}/newer; mv {folder}/newer {folder}/new.gz\n")
    with pytest.raises(NmtError, match=r"new\.gz: was replaced while new\.probing was made of it; by hand: Create"):
        binarise("probing", "new.gz", scores=3, factors=(1, 1))
    assert _made(folder) == ["new.gz"]


def test_the_command_is_one_that_a_shell_takes() -> None:
    found = binarising_command("PhraseDictionaryCompact", "a b.gz", scores=5)
    assert found == "processPhraseTableMin -in 'a b.gz' -out 'a b' -nscores 5"
    with pytest.raises(NmtError, match=r"a b\.minphr: cannot be made \(No such file"):
        binarise("compact", "a b.gz", scores=5, factors=(1, 1))
