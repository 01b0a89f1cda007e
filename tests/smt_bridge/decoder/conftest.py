"""A program that behaves like Moses."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from smt_bridge.decoder import moses_process

FAKE = Path(__file__).parents[2] / "fake_moses.py"


@pytest.fixture
def moses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Its path; restarts do not wait."""
    monkeypatch.setattr(moses_process, "_WAITS", (0.0, 0.0, 0.0))
    program = tmp_path / "moses"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} {FAKE} "$@"\n')
    program.chmod(0o755)
    return str(program)
