"""A program that behaves like Moses, and folders for a hybrid and for a tuning loop."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

from smt_bridge.moses import process as moses_process
from tests.prepared_models import KINDS, make_model
from tests.small_moses import decoder, needs_moses, write_moses_system
from tests.smt_bridge.hybrid.small_hybrid import fake_moses, files
from tests.smt_bridge.tuning.small_loop import write_system


@pytest.fixture
def moses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Its path; restarts do not wait."""
    monkeypatch.setattr(moses_process, "_WAITS", (0.0, 0.0, 0.0))
    return fake_moses(tmp_path)


@pytest.fixture(params=["fake", pytest.param("real", marks=needs_moses)])
def kind(request: pytest.FixtureRequest) -> str:
    """Which of the two runs."""
    return str(request.param)


@pytest.fixture
def either_moses(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The same, or the real decoder with a small system, in the current folder."""
    monkeypatch.setattr(moses_process, "_WAITS", (0.0, 0.0, 0.0))
    monkeypatch.chdir(tmp_path)
    write_moses_system(tmp_path)
    return fake_moses(tmp_path) if kind == "fake" else decoder(tmp_path)


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


@pytest.fixture
def either_loop(kind: str, either_moses: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Either of them and a development set whose references other weights than those of its system find."""
    monkeypatch.setenv("FAKE_MOSES", "weighted")
    if kind == "real":
        lines = [f"{' '.join(words)} ab cd" for words in itertools.product(("ab", "cd", "ef"), repeat=3)]
        (tmp_path / "dev.in").write_text("".join(f"{line}\n" for line in lines))
        (tmp_path / "dev.ref").write_text("".join(f"{line.replace('ef', 'fe')}\n" for line in lines))
    else:
        write_system(tmp_path)
    return either_moses


@pytest.fixture(scope="session")
def pieces(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model of subwords with its preparation."""
    return make_model(tmp_path_factory.mktemp("bpe"), KINDS["bpe"])
