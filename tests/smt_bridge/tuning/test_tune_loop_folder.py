"""The working folder of `smt-bridge tune-loop`: interruptions change nothing, what is of another loop is refused."""

from __future__ import annotations

import gzip
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from smt_bridge.commands.main import main
from smt_bridge.tuning import loop as tuning_loop
from smt_bridge.tuning import loop_folder
from tests.smt_bridge.hybrid.small_hybrid import FAKE
from tests.smt_bridge.tuning.small_loop import INI, SOURCE, arguments, state


def quiet(moses: str, *more: str) -> int:
    return main(arguments(moses, "--quiet", *more))


@pytest.fixture
def expected(weighted_moses: str) -> tuple[bytes, Any]:
    """What a loop that nothing interrupts writes, and its rounds; its directory is gone."""
    assert quiet(weighted_moses) == 0
    found = Path("tuned.ini").read_bytes(), state()["rounds"]
    Path("tuned.ini").unlink()
    shutil.rmtree("work")
    return found


def reached() -> tuple[bytes, Any]:
    return Path("tuned.ini").read_bytes(), state()["rounds"]


def interrupted(*_: Any, **__: Any) -> Any:
    raise KeyboardInterrupt


def test_an_interrupted_loop_ends_where_an_uninterrupted_one_does(
    weighted_moses: str, expected: tuple[bytes, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    tune = tuning_loop.tune
    for number in range(len(expected[1]) - 1):  # Ctrl-C in the tuning of every round
        left = iter([True] * number)

        def stopped(*args: Any, left: Any = left, **options: Any) -> Any:
            return tune(*args, **options) if next(left, None) else interrupted()

        monkeypatch.setattr(tuning_loop, "tune", stopped)
        assert quiet(weighted_moses) == 130
        assert not Path("work/state.json").exists() or len(state()["rounds"]) == number
        lists = [path.stat().st_mtime_ns for path in Path("work").glob("round*.nbest.gz")]
        assert len(lists) == number + 1
        monkeypatch.setattr(tuning_loop, "tune", tune)
        assert quiet(weighted_moses) == 0
        assert reached() == expected
        assert set(lists) <= {path.stat().st_mtime_ns for path in Path("work").glob("round*.nbest.gz")}
        shutil.rmtree("work")


def test_parts_of_a_list_that_is_whole_go(weighted_moses: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A loop that was killed between the list and the end of its parts."""
    unlink = os.unlink

    def killed(path: str) -> None:
        if path.endswith("00000000.gz"):
            raise KeyboardInterrupt
        unlink(path)

    with monkeypatch.context() as patch:
        patch.setattr(os, "unlink", killed)
        assert quiet(weighted_moses) == 130
    assert Path("work/round1.nbest.gz").exists() and Path("work/round1.00000000.gz").exists()
    assert quiet(weighted_moses) == 0
    assert not [*Path("work").glob("*.0*.gz")]


@pytest.mark.parametrize("name", ["round1.ini", "round2.ini"])
def test_a_killed_loop_goes_on(weighted_moses: str, expected: tuple[bytes, Any], name: str) -> None:
    killer = Path("killer")
    condition = f'case "$*" in *{name}*) if [ ! -e killed ]; then touch killed; kill -9 $PPID; sleep 60; fi;; esac'
    killer.write_text(f'#!/bin/sh\n{condition}\nexec {sys.executable} {FAKE} "$@"\n')
    killer.chmod(0o755)
    command = [sys.executable, "-m", "smt_bridge", *arguments(str(killer.resolve()), "--quiet")]
    found = subprocess.run(command, env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}, check=False)
    assert found.returncode == -signal.SIGKILL and not Path("tuned.ini").exists()
    assert main(command[3:]) == 0
    assert reached() == expected


def test_what_was_decoded_of_a_round_stays(
    weighted_moses: str, expected: tuple[bytes, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loop_folder, "_PART", 2)
    translate = loop_folder.MosesProcess.translate
    asked: list[list[bytes]] = []

    def once(process: Any, sentences: list[bytes]) -> Any:
        asked.append(list(sentences))
        return interrupted() if len(asked) == 3 else translate(process, sentences)

    monkeypatch.setattr(loop_folder.MosesProcess, "translate", once)
    assert quiet(weighted_moses) == 130
    assert quiet(weighted_moses) == 0
    assert asked[2] == asked[3] and asked[5] == asked[0]
    assert reached() == expected


def test_a_moses_that_dies_is_started_again(
    weighted_moses: str, expected: tuple[bytes, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_MOSES", "weighted DIE-AT=3")
    assert quiet(weighted_moses) == 0
    assert Path("died").exists() and reached() == expected


def test_more_rounds_go_on_behind_those_that_were_allowed(weighted_moses: str, expected: tuple[bytes, Any]) -> None:
    for allowed in (["--max-rounds", "1"], ["--max-rounds", "2"], []):
        assert quiet(weighted_moses, *allowed) == 0
    assert reached() == expected


def test_limits_that_are_smaller_than_before_end_where_a_loop_with_them_would(
    weighted_moses: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert quiet(weighted_moses) == 0
    expected, before = Path("tuned.ini").read_bytes(), state()
    assert len(before["rounds"]) > 2
    for limit in (["--max-rounds", "1"], ["--max-rounds", "2"]):
        assert main([*arguments(weighted_moses, "--quiet", *limit), "--working-dir", f"new{limit}"]) == 0
        fresh, told = Path("tuned.ini").read_bytes(), capsys.readouterr().err.splitlines()[-1]
        assert quiet(weighted_moses, *limit) == 0
        assert (Path("tuned.ini").read_bytes(), capsys.readouterr().err.splitlines()[-1]) == (fresh, told)
    assert state() == before
    assert quiet(weighted_moses) == 0
    assert (Path("tuned.ini").read_bytes(), state()) == (expected, before)


def test_sentences_without_a_list_are_told_of_after_an_interruption_too(
    weighted_moses: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("dev.in", "dev.ref"):
        with open(name, "a") as stream:
            stream.write("DIE of it\nDIE\n")
    with monkeypatch.context() as patch:
        patch.setattr(tuning_loop, "tune", interrupted)
        assert quiet(weighted_moses) == 130
    capsys.readouterr()
    assert quiet(weighted_moses, "--max-rounds", "1") == 0
    said = "tune-loop: warning: round 1: Moses failed at 2 sentences, which have no list in this round"
    assert said in capsys.readouterr().err.splitlines()


def test_what_was_decoded_of_another_source_is_not_taken(
    weighted_moses: str, monkeypatch: pytest.MonkeyPatch, error_line: Callable[..., str]
) -> None:
    """Interrupted in the first round, before any round was complete."""
    with monkeypatch.context() as patch:
        patch.setattr(tuning_loop, "tune", interrupted)
        assert quiet(weighted_moses) == 130
    Path("dev.in").write_text("b a d\n" * len(SOURCE))
    assert "was begun with another --source" in error_line(quiet, weighted_moses)


def test_a_loop_that_decoded_nothing_takes_other_files(weighted_moses: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Such as one whose Moses could not be started."""
    assert main([*arguments(weighted_moses), "--moses", "no/such/program"]) != 0
    assert "cannot be started" in capsys.readouterr().err
    Path("dev.in").write_text("b a d\n" * len(SOURCE))
    assert quiet(weighted_moses, "--max-rounds", "1") == 0


def test_other_files_or_options_are_refused(weighted_moses: str, error_line: Callable[..., str]) -> None:
    assert quiet(weighted_moses, "--max-rounds", "1") == 0
    assert Path("tuned.ini").read_text() == INI
    for name, value in (
        ("--tuner", "seed=9"), ("--nbest", "4"), ("--metric", "ter"), ("--tokenize", "13a"), ("--detokenize", "fr"),
        ("--moses-options", "-tt"), ("MOSES.INI", "+ "), ("--reference", "+more"),
    ):  # fmt: skip
        path = Path({"MOSES.INI": "moses.ini", "--reference": "dev.ref"}.get(name, "tuned.ini"))
        before = path.read_bytes()
        path.write_bytes(before + value.removeprefix("+").encode() + b"\n")
        line = error_line(main, arguments(weighted_moses, *([] if value[0] == "+" else [f"{name}={value}"])))
        problem = f"was begun with another {name}; use the same again, or another --working-dir"
        assert line == f"smt-bridge tune-loop: work: {problem}"
        path.write_bytes(before)
    Path("dev.gz").write_bytes(gzip.compress(Path("dev.in").read_bytes()))
    assert quiet(weighted_moses, "--max-rounds", "1", "--source", "dev.gz") == 0


@pytest.mark.parametrize("name", ["table.gz", "table.gz/a.dat"])
def test_another_table_under_the_same_name_is_refused(
    weighted_moses: str, name: str, error_line: Callable[..., str]
) -> None:
    Path(name).parent.mkdir(exist_ok=True)
    Path(name).write_text("a ||| b ||| 0.1\n")
    Path("lm.arpa").write_text("one")
    for _ in range(2):
        assert quiet(weighted_moses, "--max-rounds", "1") == 0
    Path(name).write_text("a ||| b ||| 0.2\n")
    said = "work: was begun with another table.gz; use the same again, or another --working-dir"
    assert said in error_line(quiet, weighted_moses, "--max-rounds", "1")
    shutil.rmtree("work")
    assert quiet(weighted_moses, "--max-rounds", "1") == 0


def test_a_folder_is_for_one_loop_at_a_time(weighted_moses: str, error_line: Callable[..., str]) -> None:
    with loop_folder.held("work"):
        line = error_line(main, arguments(weighted_moses))
    assert "work: another program is writing it; wait for its end, or stop it" in line


def test_lists_of_which_nobody_knows_what_they_are_of_are_refused(
    weighted_moses: str, error_line: Callable[..., str]
) -> None:
    assert quiet(weighted_moses, "--max-rounds", "1") == 0
    Path("work/state.json").unlink()
    lists = {path: path.read_bytes() for path in Path("work").iterdir()}
    errors = error_line(main, arguments(weighted_moses))
    assert "work: has round1.ini but no state.json, which says what it is of; remove work" in errors
    assert {path: path.read_bytes() for path in Path("work").iterdir()} == lists


def test_a_damaged_state_is_one_line(weighted_moses: str, error_line: Callable[..., str]) -> None:
    assert quiet(weighted_moses, "--max-rounds", "1") == 0
    state, other = "is not the state of a tuning loop", "is of another version of the program"
    for content, problem in (
        ("{", "is not JSON (Expecting property name enclosed in double quotes)"),
        ("[]", state),
        ('{"format": 2}', state),
        ('{"format": 2, "description": {}, "rounds": [{}]}', state),
        ('{"format": 1}', other),
        ('{"format": 9, "description": {}, "rounds": []}', other),
    ):
        Path("work/state.json").write_text(content)
        place = "work/state.json" + ":1" * (content == "{")
        line = error_line(main, arguments(weighted_moses))
        assert line == f"smt-bridge tune-loop: {place}: {problem}; remove work, and start again"
