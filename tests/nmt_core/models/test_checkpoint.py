"""Model folders: what is saved comes back, and what does not fit is refused in one line."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from nmt_core.commands.main import main
from nmt_core.errors import ModelError
from nmt_core.models.checkpoint import load_model


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "s").write_text("</s>\n<unk>\nun\ndeux\n")
    (tmp_path / "t").write_text("</s>\t9\n<unk>\t0\none\t5\ntwo\t4\n")
    sizes = ["--set", "model.hidden=4", "--set", "model.embedding=3", "--set", "model.maxout=2"]
    vocabularies = ["--source-vocab", str(tmp_path / "s"), "--target-vocab", str(tmp_path / "t")]
    assert main(["init", str(tmp_path / "m"), "--preset", "rnnencdec-cho2014", *vocabularies, *sizes]) == 0
    return tmp_path / "m"


def test_init_gives_the_same_parameters_for_the_same_seed(folder: Path, tmp_path: Path) -> None:
    loaded = load_model(str(folder))
    assert loaded.target.words == ("</s>", "<unk>", "one", "two")
    assert loaded.target.counts == (9, 0, 5, 4)
    assert loaded.config.model.summary == "tanh"
    again = load_model(str(folder), dtype=torch.float64)
    assert again.fingerprint == loaded.fingerprint
    assert next(again.model.parameters()).dtype == torch.float64


def test_a_vocabulary_that_does_not_fit_is_refused(folder: Path) -> None:
    with (folder / "target.vocab").open("a") as stream:
        stream.write("three\t1\n")
    with pytest.raises(ModelError, match=r"model.safetensors: target_embedding.weight is 4x3 .* ask for 5x3"):
        load_model(str(folder))


def test_a_newer_format_is_refused(folder: Path) -> None:
    settings = folder / "config.yaml"
    settings.write_text(settings.read_text().replace("format_version: 1", "format_version: 2"))
    with pytest.raises(ModelError, match="format version 2 but this program knows 1; update"):
        load_model(str(folder))


def test_a_damaged_file_is_refused(folder: Path) -> None:
    path = folder / "model.safetensors"
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(ModelError, match="is damaged"):
        load_model(str(folder))


@pytest.mark.parametrize("missing", ["config.yaml", "model.safetensors", "source.vocab"])
def test_a_missing_file_is_named(folder: Path, missing: str, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / missing).unlink()
    assert main(["score", "--model", str(folder), "-", "-"]) == 2
    error = capsys.readouterr().err.splitlines()[-1]
    assert missing in error


def test_an_existing_model_is_not_overwritten_by_init(folder: Path) -> None:
    vocabulary = str(folder / "source.vocab")
    arguments = ["--preset", "rnnsearch", "--source-vocab", vocabulary, "--target-vocab", vocabulary]
    assert main(["init", str(folder), *arguments]) == 2
