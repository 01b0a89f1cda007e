"""What every foreign checkpoint is tested with."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

import pytest


class Checkpoint(Protocol):
    """The files of a model, and the command that imports them."""

    folder: Path

    def run(self) -> int: ...


def assert_refused(checkpoint: Checkpoint, message: str, capsys: pytest.CaptureFixture[str]) -> None:
    """The command ends with one line that says this, and writes no model."""
    assert checkpoint.run() == 2
    errors = capsys.readouterr().err
    assert message in errors and errors.count("\n") == 1
    assert not (checkpoint.folder / "model").exists()
