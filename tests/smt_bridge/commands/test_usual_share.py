"""The warning of unknown words knows what is usual in a model's training text; no file is read twice for it."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from nmt_core.commands.main import main as nmt_core
from nmt_core.model_directory.loaded_model import save_model
from nmt_core.model_directory.settings import FolderConfig
from nmt_core.models.build import new_model
from nmt_core.models.rnnsearch import RNNsearchConfig
from nmt_core.text.vocabulary import SPECIAL_WORDS, Vocabulary
from smt_bridge.commands.main import main as smt_bridge

LINES = 120


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A model whose training text had 30 % unknown words, and a text of 40 %."""
    vocabulary = Vocabulary([*SPECIAL_WORDS, "a", "b"], [10, 30, 50, 20])
    config = RNNsearchConfig(embedding=4, hidden=5, maxout=4, alignment=3, initialisation="glorot")
    model = new_model(config, 4, 4, seed=1)
    save_model(str(tmp_path / "model"), model, vocabulary, vocabulary, FolderConfig(model=config))
    (tmp_path / "text").write_text("".join(f"a b x{number} a y\n" for number in range(LINES)))
    entries = (f"{number} ||| a b x{number} a y ||| F= 1 ||| 1\n" for number in range(LINES))
    (tmp_path / "list").write_text("".join(entries))
    return tmp_path


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often each vocabulary was read."""
    times: Counter[str] = Counter()
    load = Vocabulary.load

    def counted(path: str, *, most: int) -> Vocabulary:
        times[path] += 1
        return load(path, most=most)

    monkeypatch.setattr(Vocabulary, "load", counted)
    return times


def test_scores_of_pairs(folder: Path, read: Counter[str], capsys: pytest.CaptureFixture[str]) -> None:
    files = [str(folder / "text"), str(folder / "text")]
    assert nmt_core(["score", "--model", str(folder / "model"), "--device", "cpu", "--quiet", *files]) == 0
    assert "unknown to the model (30 % in its training text)" in capsys.readouterr().err
    assert list(read.values()) == [1, 1]


def test_features_of_lists(folder: Path, read: Counter[str], capsys: pytest.CaptureFixture[str]) -> None:
    files = ["--source", str(folder / "text"), "--nbest", str(folder / "list"), "--output", str(folder / "out")]
    options = ["--scorer", str(folder / "model"), "--devices", "cpu", "--jobs", "1", "--quiet"]
    assert smt_bridge(["add-features", *files, *options]) == 0
    assert "unknown to the model (30 % in its training text)" in capsys.readouterr().err
    assert list(read.values()) == [1, 1]


@pytest.mark.parametrize(("jobs", "lines", "window"), [("1", 20, 12), ("2", 20, 12), ("2", LINES, LINES)])
def test_it_is_said_once_whichever_worker_counts(
    folder: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, jobs: str, lines: int, window: int
) -> None:
    """A thousand words of a window are enough; at the end of a short list fewer of all windows."""
    monkeypatch.setattr("smt_bridge.lists.add.WINDOW", window)
    (folder / "short").write_text("".join((folder / "list").read_text().splitlines(keepends=True)[:lines]))
    files = ["--source", str(folder / "text"), "--nbest", str(folder / "short"), "--output", str(folder / "out")]
    options = ["--scorer", str(folder / "model"), "--devices", "cpu", "--jobs", jobs, "--quiet"]
    assert smt_bridge(["add-features", *files, *options]) == 0
    said = capfd.readouterr().err
    assert said.count("unknown to the model (30 % in its training text)") == 1
    assert f"{4 * lines:,} of the first {10 * lines:,} words (40 %)" in said
