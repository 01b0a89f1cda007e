"""``lmplz`` as a child process: what is said where it fails, and that it ends with the command."""

from __future__ import annotations

import gzip
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from smt_bridge.commands.main import main
from tests.child_programs import is_running, wait_until_ended, wait_until_started


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    return tmp_path


def stand_in(script: str) -> None:
    """A program that the command takes for ``lmplz``."""
    Path("lmplz").write_text(f"#!/bin/sh\n{script}\n")
    Path("lmplz").chmod(0o755)


def test_text_that_cannot_be_read_to_its_end_is_not_made_a_model_of(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Left alone, lmplz would take what it got for the whole text."""
    stand_in("echo $$ > process; cat > /dev/null; exec sleep 1000")
    lines = "".join(f"word{number} of a text\n" for number in range(100_000)).encode()
    Path("text.gz").write_bytes(gzip.compress(lines)[:-1000])
    assert main(["build-lm", "--order", "2", "--input", "text.gz", "--output", "lm"]) == 2
    assert "the compressed data ends too early" in capsys.readouterr().err
    assert not is_running(int(Path("process").read_text()))
    assert not Path("lm").exists()


@pytest.mark.parametrize("ending", [signal.SIGTERM, signal.SIGKILL])
def test_lmplz_ends_with_the_command(folder: Path, ending: signal.Signals) -> None:
    stand_in("echo $$ > process; exec sleep 1000")
    command = [sys.executable, "-m", "smt_bridge", "build-lm", "--order", "2", "--output", "lm"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        program = wait_until_started(Path("process"))
        process.send_signal(ending)
    wait_until_ended(program)
    assert not Path("lm").exists()


def test_a_failure_without_a_word_says_where_to_look(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    stand_in("cat > /dev/null; exit 6")
    Path("text").write_text("a b\n")
    assert main(["build-lm", "--order", "2", "--input", "text", "--output", "lm"]) == 2
    error = capsys.readouterr().err
    assert "lmplz -o 2 failed with exit code 6: it said nothing; is there space in " in error
    assert error.count("\n") == 1
