"""Files that several programs make get their names in turn, and nobody waits without an end, or without a word."""

from __future__ import annotations

import fcntl
import os
import queue
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from nmt_core.files import in_turn
from nmt_core.files import turns as turns_module
from nmt_core.files.turns import folder_in_turn
from nmt_core.models.folder import replace_files


@pytest.fixture
def silent_briefly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turns_module, "_SILENT_S", 0.05)


@pytest.mark.parametrize("turn", [lambda folder: in_turn(f"{folder}/out"), lambda folder: folder_in_turn(str(folder))])
@pytest.mark.usefixtures("silent_briefly")
def test_who_waits_for_another_says_for_what(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, turn: Callable[[Path], AbstractContextManager[None]]
) -> None:
    said: queue.Queue[str] = queue.Queue()
    monkeypatch.setattr(turns_module, "say", said.put)

    def wait() -> None:
        with turn(tmp_path):
            order.append("second")

    order: list[str] = []
    second = threading.Thread(target=wait)
    with turn(tmp_path):
        second.start()
        remark = said.get(timeout=60)
        order.append("first")
    second.join()
    assert order == ["first", "second"]
    assert remark.startswith(str(tmp_path)) and "another program is writing it; this one waits for its end" in remark
    assert "fuser" in remark
    assert os.listdir(tmp_path) == []


def test_a_folder_that_is_not_there_yet_is_made_for_the_turn(tmp_path: Path) -> None:
    """Two commands of which each made it after its turn had begun had their turns at the same time."""
    with in_turn(str(tmp_path / "new" / "er" / "out")):
        assert [name.endswith("turn.hybridmt.tmp") for name in os.listdir(tmp_path / "new" / "er")] == [True]
    assert os.listdir(tmp_path) == []
    with in_turn(str(tmp_path / "new" / "out")):
        (tmp_path / "new" / "out").touch()
    assert os.listdir(tmp_path / "new") == ["out"]


def test_a_short_turn_of_another_is_not_mentioned(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def take() -> None:
        for _ in range(50):
            with in_turn(str(tmp_path / "out")):
                pass

    takers = [threading.Thread(target=take) for _ in range(2)]
    for taker in takers:
        taker.start()
    for taker in takers:
        taker.join()
    assert capsys.readouterr().err == ""


def test_a_folder_that_is_locked_itself_is_written_to(tmp_path: Path) -> None:
    descriptor = os.open(tmp_path, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        replace_files(str(tmp_path), {"a": lambda path: Path(path).write_text("new") and None})
    finally:
        os.close(descriptor)
    assert os.listdir(tmp_path) == ["a"]


@pytest.mark.skipif(shutil.which("flock") is None, reason="needs flock of util-linux")
def test_a_command_that_is_started_by_flock_of_its_folder_does_not_wait_for_itself(tmp_path: Path) -> None:
    """It has inherited the lock, so that nothing but its own end would take it away."""
    program = (
        "import sys; from pathlib import Path; from nmt_core.models.folder import replace_files\n"
        "replace_files(sys.argv[1], {'a': lambda path: Path(path).write_text('new') and None})"
    )
    command = ["flock", str(tmp_path), sys.executable, "-c", program, str(tmp_path)]
    assert subprocess.run(command, check=False, timeout=60).returncode == 0
    assert (tmp_path / "a").read_text() == "new"


def test_where_no_lock_can_be_made_there_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def unsupported(*_: object) -> None:
        raise OSError(95, "Operation not supported")

    monkeypatch.setattr(fcntl, "flock", unsupported)
    with folder_in_turn(str(tmp_path)), in_turn(str(tmp_path / "missing" / "out")):
        assert list(tmp_path.rglob("*")) == [tmp_path / "missing"]
