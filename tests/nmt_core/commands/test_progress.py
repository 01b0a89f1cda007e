"""``score`` and ``decode`` show how far they are, of how much, on a terminal alone."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from nmt_core.commands.main import main
from tests.nmt_core.commands.test_decode import folder

__all__ = ["folder"]


class Stderr(io.StringIO):
    """Standard error that is a terminal, or not."""

    def __init__(self, *, terminal: bool) -> None:
        super().__init__()
        self._terminal = terminal

    def isatty(self) -> bool:
        return self._terminal


@pytest.mark.parametrize(
    ("terminal", "options", "shown"), [(True, [], True), (True, ["--quiet"], False), (False, [], False)]
)
@pytest.mark.parametrize("command", ["score", "decode"])
def test_progress_has_a_total(
    folder: Path, monkeypatch: pytest.MonkeyPatch, command: str, terminal: bool, options: list[str], shown: bool
) -> None:
    files = [str(folder / "three.source"), str(folder / "three.target")]
    for name in files:
        Path(name).write_text("un\n" * 3)
    said = Stderr(terminal=terminal)
    monkeypatch.setattr("sys.stderr", said)
    places = files if command == "score" else ["--input", files[0]]
    assert main([command, "--model", str(folder / "search"), "--device", "cpu", *options, *places]) == 0
    assert ("3/3" in said.getvalue()) == (command in said.getvalue()) == shown


@pytest.mark.parametrize("command", ["score", "decode"])
def test_a_wrong_first_line_has_no_bar(folder: Path, monkeypatch: pytest.MonkeyPatch, command: str) -> None:
    bad = folder / "bad"
    bad.write_bytes(b"\xff\n")
    places = [str(bad), str(bad)] if command == "score" else ["--input", str(bad)]
    said = Stderr(terminal=True)
    monkeypatch.setattr("sys.stderr", said)
    assert main([command, "--model", str(folder / "search"), "--device", "cpu", *places]) == 2
    assert [line.startswith(f"nmt-core {command}: {bad}:1: ") for line in said.getvalue().splitlines()] == [True]
