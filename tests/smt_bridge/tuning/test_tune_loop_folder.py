"""The working folder of `smt-bridge tune-loop`: interruptions change nothing, what is of another loop is refused."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from smt_bridge.commands.main import main
from smt_bridge.tuning import loop as tuning_loop
from tests.smt_bridge.hybrid.small_hybrid import FAKE
from tests.smt_bridge.tuning.small_loop import INI, SOURCE, arguments, state


def test_an_interrupted_loop_ends_where_an_uninterrupted_one_does(
    weighted_moses: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert main(arguments(weighted_moses, "--quiet")) == 0
    expected, rounds = Path("tuned.ini").read_bytes(), state()["rounds"]
    tune = tuning_loop.tune
    for number in range(len(rounds) - 1):  # Ctrl-C in the tuning of every round
        left = iter([True] * number)

        def interrupted(*args: Any, left: Any = left, **options: Any) -> Any:
            if next(left, None) is None:
                raise KeyboardInterrupt
            return tune(*args, **options)

        monkeypatch.setattr(tuning_loop, "tune", interrupted)
        shutil.rmtree("work")
        assert main(arguments(weighted_moses, "--quiet")) == 130
        assert not Path("work/state.json").exists() or len(state()["rounds"]) == number
        lists = [path.stat().st_mtime_ns for path in Path("work").glob("round*.nbest.gz")]
        assert len(lists) == number + 1
        monkeypatch.setattr(tuning_loop, "tune", tune)
        assert main(arguments(weighted_moses, "--quiet")) == 0
        assert (Path("tuned.ini").read_bytes(), state()["rounds"]) == (expected, rounds)
        assert set(lists) <= {path.stat().st_mtime_ns for path in Path("work").glob("round*.nbest.gz")}


def test_parts_of_a_list_that_is_whole_go(weighted_moses: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A loop that was killed between the list and the end of its parts."""
    unlink = os.unlink

    def killed(path: str) -> None:
        if path.endswith("00000000.gz"):
            raise KeyboardInterrupt
        unlink(path)

    with monkeypatch.context() as patch:
        patch.setattr(os, "unlink", killed)
        assert main(arguments(weighted_moses, "--quiet")) == 130
    assert Path("work/round1.nbest.gz").exists() and Path("work/round1.00000000.gz").exists()
    assert main(arguments(weighted_moses, "--quiet")) == 0
    assert not [*Path("work").glob("*.0*.gz")]


@pytest.mark.parametrize("name", ["round1.ini", "round2.ini"])
def test_a_killed_loop_goes_on(weighted_moses: str, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert main(arguments(weighted_moses, "--quiet")) == 0
    expected = Path("tuned.ini").read_bytes()
    os.unlink("tuned.ini")
    shutil.rmtree("work")
    killer = Path("killer")
    condition = f'case "$*" in *{name}*) if [ ! -e killed ]; then touch killed; kill -9 $PPID; sleep 60; fi;; esac'
    killer.write_text(f'#!/bin/sh\n{condition}\nexec {sys.executable} {FAKE} "$@"\n')
    killer.chmod(0o755)
    command = [sys.executable, "-m", "smt_bridge", *arguments(str(killer.resolve()), "--quiet")]
    found = subprocess.run(command, env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}, check=False)
    assert found.returncode == -signal.SIGKILL and not Path("tuned.ini").exists()
    assert main(command[3:]) == 0
    assert Path("tuned.ini").read_bytes() == expected


def test_what_was_decoded_of_a_round_stays(weighted_moses: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from smt_bridge.tuning import loop_folder as development

    assert main(arguments(weighted_moses, "--quiet")) == 0
    expected = Path("tuned.ini").read_bytes()
    monkeypatch.setattr(development, "_PART", 2)
    translate = development.MosesProcess.translate
    asked: list[list[bytes]] = []

    def once(process: Any, sentences: list[bytes]) -> Any:
        asked.append(list(sentences))
        if len(asked) == 3:
            raise KeyboardInterrupt
        return translate(process, sentences)

    monkeypatch.setattr(development.MosesProcess, "translate", once)
    shutil.rmtree("work")
    assert main(arguments(weighted_moses, "--quiet")) == 130
    assert main(arguments(weighted_moses, "--quiet")) == 0
    assert asked[2] == asked[3] and asked[5] == asked[0]
    assert Path("tuned.ini").read_bytes() == expected


def test_a_moses_that_dies_is_started_again(weighted_moses: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert main(arguments(weighted_moses, "--quiet")) == 0
    expected = Path("tuned.ini").read_bytes()
    monkeypatch.setenv("FAKE_MOSES", "weighted DIE-AT=3")
    shutil.rmtree("work")
    assert main(arguments(weighted_moses, "--quiet")) == 0
    assert Path("died").exists() and Path("tuned.ini").read_bytes() == expected


def test_more_rounds_go_on_behind_those_that_were_allowed(weighted_moses: str) -> None:
    assert main(arguments(weighted_moses, "--quiet")) == 0
    expected, rounds = Path("tuned.ini").read_bytes(), state()["rounds"]
    shutil.rmtree("work")
    for allowed in (["--max-rounds", "1"], ["--max-rounds", "2"], []):
        assert main(arguments(weighted_moses, "--quiet", *allowed)) == 0
    assert (Path("tuned.ini").read_bytes(), state()["rounds"]) == (expected, rounds)


def test_limits_that_are_smaller_than_before_end_where_a_loop_with_them_would(
    weighted_moses: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments(weighted_moses, "--quiet")) == 0
    expected, before = Path("tuned.ini").read_bytes(), state()
    assert len(before["rounds"]) > 2
    for limit in (["--max-rounds", "1"], ["--max-rounds", "2"]):
        assert main([*arguments(weighted_moses, "--quiet", *limit), "--working-dir", f"new{limit}"]) == 0
        fresh, told = Path("tuned.ini").read_bytes(), capsys.readouterr().err.splitlines()[-1]
        assert main(arguments(weighted_moses, "--quiet", *limit)) == 0
        assert (Path("tuned.ini").read_bytes(), capsys.readouterr().err.splitlines()[-1]) == (fresh, told)
    assert state() == before
    assert main(arguments(weighted_moses, "--quiet")) == 0
    assert (Path("tuned.ini").read_bytes(), state()) == (expected, before)


def test_sentences_without_a_list_are_told_of_after_an_interruption_too(
    weighted_moses: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("dev.in", "dev.ref"):
        with open(name, "a") as stream:
            stream.write("DIE of it\n")

    def interrupted(*_: Any, **__: Any) -> Any:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(tuning_loop, "tune", interrupted)
        assert main(arguments(weighted_moses, "--quiet")) == 130
    capsys.readouterr()
    assert main(arguments(weighted_moses, "--quiet", "--max-rounds", "1")) == 0
    assert "warning: round 1: Moses failed at 1 sentence, which has no list" in capsys.readouterr().err


def test_what_was_decoded_of_another_source_is_not_taken(
    weighted_moses: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Interrupted in the first round, before any round was complete."""

    def interrupted(*_: Any, **__: Any) -> Any:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(tuning_loop, "tune", interrupted)
        assert main(arguments(weighted_moses, "--quiet")) == 130
    Path("dev.in").write_text("b a d\n" * len(SOURCE))
    capsys.readouterr()
    assert main(arguments(weighted_moses, "--quiet")) == 2
    assert "was begun with another --source" in capsys.readouterr().err


def test_other_files_or_options_are_refused(weighted_moses: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments(weighted_moses, "--quiet", "--max-rounds", "1")) == 0
    assert Path("tuned.ini").read_text() == INI
    capsys.readouterr()
    assert main(arguments(weighted_moses, "--tuner", "seed=9")) == 2
    assert "was begun with another --tuner; use the same again" in capsys.readouterr().err
    with open("dev.ref", "a") as stream:
        stream.write("more\n")
    assert main(arguments(weighted_moses)) == 2
    assert "was begun with another --reference" in capsys.readouterr().err
    shutil.rmtree("work")
    assert main(arguments(weighted_moses, "--quiet")) == 0


@pytest.mark.parametrize("name", ["table.gz", "table.gz/a.dat"])
def test_another_table_under_the_same_name_is_refused(
    weighted_moses: str, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    Path(name).parent.mkdir(exist_ok=True)
    Path(name).write_text("a ||| b ||| 0.1\n")
    Path("lm.arpa").write_text("one")
    for _ in range(2):
        assert main(arguments(weighted_moses, "--quiet", "--max-rounds", "1")) == 0
    Path(name).write_text("a ||| b ||| 0.2\n")
    capsys.readouterr()
    assert main(arguments(weighted_moses, "--quiet", "--max-rounds", "1")) == 2
    said = "work: was begun with another table.gz; use the same again, or another --working-dir"
    assert said in capsys.readouterr().err
    shutil.rmtree("work")
    assert main(arguments(weighted_moses, "--quiet", "--max-rounds", "1")) == 0


def test_a_folder_is_for_one_loop_at_a_time(weighted_moses: str, capsys: pytest.CaptureFixture[str]) -> None:
    from smt_bridge.tuning.loop_folder import held

    with held("work"):
        assert main(arguments(weighted_moses)) == 2
    assert "another program tunes there now" in capsys.readouterr().err


def test_lists_of_which_nobody_knows_what_they_are_of_are_refused(
    weighted_moses: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments(weighted_moses, "--quiet")) == 0
    expected = Path("tuned.ini").read_bytes()
    Path("work/state.json").unlink()
    lists = {path: path.read_bytes() for path in Path("work").iterdir()}
    capsys.readouterr()
    assert main(arguments(weighted_moses)) == 2
    errors = capsys.readouterr().err
    assert "work: has round1.ini but no state.json, which says what it is of; remove work" in errors
    assert errors.count("\n") == 1 and {path: path.read_bytes() for path in Path("work").iterdir()} == lists
    shutil.rmtree("work")
    assert main(arguments(weighted_moses, "--quiet")) == 0
    assert Path("tuned.ini").read_bytes() == expected


def test_a_damaged_state_is_one_line(weighted_moses: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments(weighted_moses, "--quiet", "--max-rounds", "1")) == 0
    for content in ("{", "[]", '{"format": 1}', '{"format": 9, "description": {}, "rounds": []}'):
        Path("work/state.json").write_text(content)
        capsys.readouterr()
        assert main(arguments(weighted_moses)) == 2
        errors = capsys.readouterr().err
        assert "remove work, and start again" in errors and errors.count("\n") == 1
