"""``train-lm``: a language model of monolingual text that learns, resumes, and says what it left out."""

from __future__ import annotations

import math
import random
import re
from pathlib import Path

import pytest
import torch
import yaml

from nmt_core.commands.main import main
from nmt_core.models.checkpoint import load_model
from nmt_core.models.tensors import load_tensors
from nmt_core.text.vocabulary import SPECIAL_WORDS

WORDS = [f"w{number}" for number in range(8)]
RUN = ["--quiet", "--device", "cpu"]


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    """Sentences that count on from a random word: the first word and the end are all there is to guess."""
    generator = random.Random(1)
    for name, count in (("train", 400), ("dev", 40)):
        firsts = [(generator.randrange(8), generator.randint(3, 6)) for _ in range(count)]
        lines = [" ".join(WORDS[(first + number) % 8] for number in range(length)) for first, length in firsts]
        (tmp_path / name).write_text("\n".join(lines) + "\n")
    return tmp_path


def write_config(corpus: Path, folder: str, **data: object) -> str:
    settings = {
        "folder": str(corpus / folder),
        "model": {"hidden": 24, "embedding": 12, "initialisation": "glorot"},
        "data": {"text": str(corpus / "train"), "dev_text": str(corpus / "dev"), **data},
        "training": {
            "optimizer": "adam",
            "learning_rate": 0.01,
            "gradient": "word",
            "batch_sentences": 20,
            "validate_every": 25,
            "max_updates": 150,
        },
    }
    path = corpus / f"{folder}.yaml"
    path.write_text(yaml.safe_dump(settings))
    return str(path)


@pytest.mark.parametrize("cell", ["gru", "lstm"])
def test_it_learns_and_reports_perplexity(corpus: Path, capsys: pytest.CaptureFixture[str], cell: str) -> None:
    assert main(["train-lm", write_config(corpus, "lm"), "--device", "cpu", "--set", f"model.cell={cell}"]) == 0
    told = capsys.readouterr().err
    nats, perplexity = re.findall(r"dev: ([\d.]+) nats/word, perplexity ([\d.]+)", told)[-1]
    assert float(perplexity) == pytest.approx(math.exp(float(nats)), rel=2e-3)
    assert float(nats) < 0.9  # (ln 8 + ln 4) / 5.5 words and ends is 0.63; a guess among ten words 2.3
    assert "BLEU" not in told
    loaded = load_model(str(corpus / "lm"))
    assert loaded.config.model.type == "rnnlm"
    assert loaded.config.model.cell == cell
    assert loaded.source.words == SPECIAL_WORDS
    assert sorted(loaded.target.words[2:]) == WORDS


def test_a_resumed_run_ends_like_an_uninterrupted_one(corpus: Path) -> None:
    whole, parts = write_config(corpus, "whole"), write_config(corpus, "parts")
    assert main(["train-lm", whole, *RUN, "--set", "training.max_updates=40"]) == 0
    assert main(["train-lm", parts, *RUN, "--set", "training.max_updates=15"]) == 0
    assert main(["train-lm", parts, *RUN, "--resume", "--set", "training.max_updates=40"]) == 0
    first, second = (load_tensors(str(corpus / name / "training.safetensors")) for name in ("whole", "parts"))
    assert all(torch.equal(tensor, second[name]) for name, tensor in first.items())


def test_junk_is_left_out_and_told(corpus: Path, capsys: pytest.CaptureFixture[str]) -> None:
    clean = (corpus / "train").read_bytes()
    (corpus / "dirty").write_bytes(b"\x7fELF\x00\n" + clean + b"\xff\n")
    options = [*RUN, "--set", "training.max_updates=5"]
    assert main(["train-lm", write_config(corpus, "junk", text=str(corpus / "dirty")), *options]) == 0
    told = capsys.readouterr().err
    assert f"{corpus / 'dirty'}:1: 2 lines are no UTF-8 text and left out" in told
    assert main(["train-lm", write_config(corpus, "pure"), *options]) == 0
    first, second = (load_tensors(str(corpus / name / "model.safetensors")) for name in ("junk", "pure"))
    assert all(torch.equal(tensor, second[name]) for name, tensor in first.items())


@pytest.mark.parametrize(
    ("command", "changes", "problem"),
    [
        ("train-lm", ["model.type=rnnencdec"], "data.text is for models of type rnnlm"),
        ("train", ["model.type=rnnlm"], "select_by: nll"),
        ("train-lm", ["data.source=x", "data.target=y"], "for a language model text"),
        ("train-lm", ["data.dev_text=null", "data.dev_source=x", "data.dev_target=y"], "dev_text goes with text"),
        ("train-lm", ["data.text=nowhere"], "nowhere: cannot be read"),
        ("train-lm", ["data.max_length=1"], "no sentence is left"),
        ("train-lm", ["training.source_embeddings=x"], "no source words"),
    ],
)
def test_what_does_not_go_together_is_told(
    corpus: Path, capsys: pytest.CaptureFixture[str], command: str, changes: list[str], problem: str
) -> None:
    options = [part for change in changes for part in ("--set", change)]
    assert main([command, write_config(corpus, "bad"), *RUN, *options]) == 2
    assert problem in capsys.readouterr().err
