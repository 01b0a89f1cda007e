"""A program that behaves like Moses, and folders for a hybrid and for a tuning loop."""

from __future__ import annotations

from pathlib import Path

import pytest

from smt_bridge.decoder import moses_process
from tests.small_moses import decoder, needs_moses, write_moses_system
from tests.smt_bridge.decoder.small_hybrid import fake_moses, files
from tests.smt_bridge.decoder.small_loop import write_system


@pytest.fixture
def moses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Its path; restarts do not wait."""
    monkeypatch.setattr(moses_process, "_WAITS", (0.0, 0.0, 0.0))
    return fake_moses(tmp_path)


@pytest.fixture(params=["fake", pytest.param("real", marks=needs_moses)])
def either_moses(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The same, or the real decoder with a small system, in the current folder."""
    monkeypatch.setattr(moses_process, "_WAITS", (0.0, 0.0, 0.0))
    monkeypatch.chdir(tmp_path)
    write_moses_system(tmp_path)
    return fake_moses(tmp_path) if request.param == "fake" else decoder(tmp_path)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with a model and a development set."""
    monkeypatch.chdir(tmp_path)
    files(tmp_path)
    return tmp_path


@pytest.fixture
def weighted_moses(moses: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The same with lists that depend on the weights, in the folder of a system and its development set."""
    monkeypatch.setenv("FAKE_MOSES", "weighted")
    monkeypatch.chdir(tmp_path)
    write_system(tmp_path)
    return moses
