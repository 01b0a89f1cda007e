"""``train`` of monolingual text: a language model that learns, resumes, and says what it left out."""

from __future__ import annotations

import math
import random
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import yaml
from safetensors.torch import load_file

from nmt_core.base.interfaces import SentencePair
from nmt_core.commands.main import main
from nmt_core.model_directory.loaded_model import load_model
from nmt_core.text.vocabulary import SPECIAL_WORDS
from tests.model_files import open_pair_scorer

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


def write_config(corpus: Path, folder: str, *, model: dict[str, Any] | None = None, **data: object) -> str:
    settings = {
        "folder": str(corpus / folder),
        "model": model or {"hidden": 24, "embedding": 12, "initialisation": "glorot"},
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


def test_it_learns_and_reports_perplexity(corpus: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", write_config(corpus, "lm"), "--device", "cpu", "--set", "model.cell=lstm"]) == 0
    message = capsys.readouterr().err
    nats, perplexity = re.findall(r"dev: ([\d.]+) nats/word, perplexity ([\d.]+)", message)[-1]
    assert float(perplexity) == pytest.approx(math.exp(float(nats)), rel=2e-3)
    assert float(nats) < 0.9  # (ln 8 + ln 4) / 5.5 words and ends is 0.63; a guess among ten words 2.3
    assert "BLEU" not in message
    loaded = load_model(str(corpus / "lm"))
    assert loaded.config.model.type == "rnnlm"
    assert loaded.config.model.cell == "lstm"
    assert loaded.source.words == SPECIAL_WORDS
    assert sorted(loaded.target.words[2:]) == WORDS


CSLM = {"type": "cslm", "order": 4, "embedding": 12, "hidden": [24, 16], "dropout": 0.1}


def test_a_continuous_space_model_learns_a_chain_of_words(corpus: Path, capsys: pytest.CaptureFixture[str]) -> None:
    generator = random.Random(5)
    chances = {word: [generator.random() ** 2 for _ in range(5)] for word in range(5)}  # 4 words and the end

    def draw() -> tuple[list[int], float]:
        words, nats, before = [], 0.0, 4
        while True:
            word = generator.choices(range(5), chances[before])[0]
            nats -= math.log(chances[before][word] / sum(chances[before]))
            if word == 4:
                return words, nats
            words.append(word)
            before = word

    drawn = {"train": [draw() for _ in range(5000)], "dev": [draw() for _ in range(600)]}
    drawn = {name: [one for one in sentences if one[0]] for name, sentences in drawn.items()}
    for name, sentences in drawn.items():
        (corpus / name).write_text("".join(" ".join(WORDS[word] for word in words) + "\n" for words, _ in sentences))
    begins = chances[4][4] / sum(chances[4])  # sentences without a word are left out
    nats = sum(nats + math.log(1 - begins) for _, nats in drawn["dev"])
    truth = math.exp(nats / sum(len(words) + 1 for words, _ in drawn["dev"]))
    options = ["--device", "cpu", "--set", "training.max_updates=400", "--set", "training.validate_every=200"]
    options += ["--set", "training.batch_sentences=100", "--set", "training.warmup=10"]
    options += ["--set", "training.warmup=100", "--set", "training.window=1"]  # lengths say where sentences end
    config = write_config(corpus, "chain", model=CSLM | {"dropout": 0.0, "order": 3}, max_length=None)
    assert main(["train", config, *options]) == 0
    reported = [float(found) for found in re.findall(r"perplexity ([\d.]+)", capsys.readouterr().err)]
    assert min(reported) == pytest.approx(truth, rel=0.02)
    lines = (corpus / "dev").read_text().splitlines()
    scores = open_pair_scorer([str(corpus / "chain")]).score([SentencePair("", line) for line in lines])
    words = sum(len(line.split()) + 1 for line in lines)
    assert math.exp(-sum(score.log_prob for score in scores) / words) == pytest.approx(min(reported), rel=1e-3)


@pytest.mark.parametrize(
    ("model", "partitions"), [({}, True), (CSLM, False), (CSLM | {"initialisation": "uniform"}, True)]
)
def test_a_resumed_run_ends_like_an_uninterrupted_one(corpus: Path, model: dict[str, Any], partitions: bool) -> None:
    whole, parts = write_config(corpus, "whole", model=model), write_config(corpus, "parts", model=model)
    for path in (whole, parts) if partitions else ():
        settings = yaml.safe_load(Path(path).read_text())
        settings["training"] |= {"partition_words": 10, "batch_sentences": 4}
        Path(path).write_text(yaml.safe_dump(settings))
    assert main(["train", whole, *RUN, "--set", "training.max_updates=40"]) == 0
    assert main(["train", parts, *RUN, "--set", "training.max_updates=15"]) == 0
    assert main(["train", parts, *RUN, "--resume", "--set", "training.max_updates=40"]) == 0
    first, second = (load_file(str(corpus / name / "training.safetensors")) for name in ("whole", "parts"))
    assert all(torch.equal(tensor, second[name]) for name, tensor in first.items())


def test_a_run_that_starts_from_a_model_takes_its_type(corpus: Path) -> None:
    first = write_config(corpus, "first", model=CSLM)
    assert main(["train", first, *RUN, "--set", "training.max_updates=1"]) == 0
    settings = yaml.safe_load(Path(first).read_text())
    del settings["model"]
    settings |= {"folder": str(corpus / "next"), "training": {"start_from": str(corpus / "first"), "max_updates": 1}}
    Path(first).write_text(yaml.safe_dump(settings))
    assert main(["train", first, *RUN]) == 0
    assert load_model(str(corpus / "next")).config.model.type == "cslm"


def test_what_is_no_utf8_is_told_with_its_line(corpus: Path, error_line: Callable[..., str]) -> None:
    (corpus / "dirty").write_bytes(b"a\n\xff\n" + (corpus / "train").read_bytes())
    line = error_line(main, ["train", write_config(corpus, "junk", text=str(corpus / "dirty")), *RUN])
    assert f"{corpus / 'dirty'}:2: " in line


@pytest.mark.parametrize(
    ("command", "changes", "problem"),
    [
        ("train", ["data.text=nowhere"], "nowhere: cannot be read"),
        ("train", ["data.max_length=1"], "no sentence is left"),
    ],
)
def test_what_does_not_go_together_is_told(
    corpus: Path, error_line: Callable[..., str], command: str, changes: list[str], problem: str
) -> None:
    options = [part for change in changes for part in ("--set", change)]
    assert problem in error_line(main, [command, write_config(corpus, "bad"), *RUN, *options])
