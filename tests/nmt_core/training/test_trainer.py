"""Training: exact resumption, the optimiser of the papers, and models that really learn."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
import yaml
from safetensors.torch import load_file

from nmt_core.batches.padding import pad_pairs
from nmt_core.commands.main import main
from nmt_core.layers.losses import LossOptions
from nmt_core.model_directory.loaded_model import load_model
from nmt_core.models.build import new_model
from nmt_core.models.rnnsearch import RNNsearchConfig
from nmt_core.training.config import TrainingConfig
from nmt_core.training.gradient import backpropagate
from nmt_core.training.optimizer import build_optimizer, rescale_gradient

WORDS = [f"w{number}" for number in range(12)]


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    """Sentences to be reversed."""
    generator = random.Random(1)
    for name, count in (("train", 400), ("dev", 30)):
        sources = [[generator.choice(WORDS) for _ in range(generator.randint(1, 6))] for _ in range(count)]
        (tmp_path / f"{name}.s").write_text("".join(" ".join(words) + "\n" for words in sources))
        (tmp_path / f"{name}.t").write_text("".join(" ".join(words[::-1]) + "\n" for words in sources))
    return tmp_path


def write_config(corpus: Path, folder: str, **training: object) -> str:
    settings = {
        "folder": str(corpus / folder),
        "model": {"type": "rnnsearch", "hidden": 12, "embedding": 8, "alignment": 8, "maxout": 8, "dropout": 0.2},
        "data": {
            "source": str(corpus / "train.s"),
            "target": str(corpus / "train.t"),
            "dev_source": str(corpus / "dev.s"),
            "dev_target": str(corpus / "dev.t"),
        },
        "training": {"batch_sentences": 20, "window": 4, "validate_every": 7, "dev_beam": 1, **training},
    }
    settings["model"]["initialisation"] = "glorot"
    path = corpus / f"{folder}.yaml"
    path.write_text(yaml.safe_dump(settings))
    return str(path)


@pytest.mark.parametrize("optimizer", ["adadelta", "adam"])
def test_a_resumed_run_ends_with_the_weights_of_an_uninterrupted_one(corpus: Path, optimizer: str) -> None:
    options = ["--quiet", "--device", "cpu"]
    whole = write_config(corpus, "whole", optimizer=optimizer, max_updates=33)
    parts = write_config(corpus, "parts", optimizer=optimizer, max_updates=33)
    assert main(["train", whole, *options]) == 0
    assert main(["train", parts, *options, "--set", "training.max_updates=10"]) == 0
    assert main(["train", parts, *options, "--resume", "--set", "training.max_updates=26"]) == 0
    assert main(["train", parts, *options, "--resume"]) == 0
    states = [load_file(str(corpus / name / "training.safetensors")) for name in ("whole", "parts")]
    assert states[0].keys() == states[1].keys()
    for name, tensor in states[0].items():
        assert torch.equal(tensor, states[1][name]), name


@pytest.mark.parametrize("signal_number", [signal.SIGKILL, signal.SIGTERM])
def test_a_killed_run_goes_on_as_if_it_had_not_been(corpus: Path, signal_number: signal.Signals) -> None:
    whole = write_config(corpus, "whole", max_updates=60)
    killed = write_config(corpus, "killed", max_updates=60)
    assert main(["train", whole, "--quiet", "--device", "cpu"]) == 0
    command = [sys.executable, "-m", "nmt_core", "train", killed, "--device", "cpu"]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])}
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment) as process:
        assert process.stderr is not None
        next(line for line in process.stderr if "dev:" in line)
        process.send_signal(signal_number)
        assert process.wait(60) == (-9 if signal_number == signal.SIGKILL else 130)
    assert main(["train", killed, "--quiet", "--device", "cpu", "--resume"]) == 0
    states = [load_file(str(corpus / name / "training.safetensors")) for name in ("whole", "killed")]
    for name, tensor in states[0].items():
        assert torch.equal(tensor, states[1][name]), name
    before = load_file(str(corpus / "killed" / "training.safetensors"))
    assert main(["train", killed, "--quiet", "--device", "cpu", "--resume"]) == 0  # nothing is left to do
    after = load_file(str(corpus / "killed" / "training.safetensors"))
    assert all(torch.equal(tensor, after[name]) for name, tensor in before.items())


def test_a_run_stopped_before_its_first_validation_goes_on_too(corpus: Path) -> None:
    whole = write_config(corpus, "whole", max_updates=40, validate_every=1000)
    stopped = write_config(corpus, "stopped", max_updates=40, validate_every=1000)
    assert main(["train", whole, "--quiet", "--device", "cpu"]) == 0
    code = (
        "import os, signal, sys\n"
        "from nmt_core.commands.main import main\n"
        "from nmt_core.training.trainer import Trainer\n"
        "update = Trainer._update\n"
        "def stopping(self, *work):\n"
        "    update(self, *work)\n"
        "    if self.progress.update == 5: os.kill(os.getpid(), signal.SIGTERM)\n"
        "Trainer._update = stopping\n"
        f"sys.exit(main(['train', {stopped!r}, '--quiet', '--device', 'cpu']))\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])}
    assert subprocess.run([sys.executable, "-c", code], env=environment, check=False).returncode == 130
    assert main(["train", stopped, "--quiet", "--device", "cpu", "--resume"]) == 0
    states = [load_file(str(corpus / name / "training.safetensors")) for name in ("whole", "stopped")]
    assert all(torch.equal(tensor, states[1][name]) for name, tensor in states[0].items())


def test_resuming_with_other_settings_is_refused(corpus: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write_config(corpus, "run", max_updates=3)
    assert main(["train", path, "--quiet"]) == 0
    assert main(["train", path, "--quiet"]) == 2
    assert "--resume" in capsys.readouterr().err
    assert main(["train", path, "--quiet", "--resume", "--set", "training.seed=9"]) == 2
    assert "training.seed was 1 and is 9" in capsys.readouterr().err


def test_an_unknown_key_is_refused_and_the_nearest_named(corpus: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write_config(corpus, "run", optimiser="adam")
    assert main(["train", path]) == 2
    error = capsys.readouterr().err
    assert "training.optimiser" in error
    assert "did you mean 'optimizer'" in error
    assert len(error.splitlines()) == 1


@pytest.mark.slow
def test_a_model_learns_to_reverse(corpus: Path) -> None:
    settings = {
        "optimizer": "adam",
        "learning_rate": 0.01,
        "gradient": "word",
        "max_updates": 700,
        "validate_every": 350,
    }
    path = write_config(corpus, "reverse", **settings, average=2)
    overrides = ["model.hidden=32", "model.alignment=32", "model.maxout=32", "model.embedding=16", "model.dropout=0"]
    arguments = [argument for override in overrides for argument in ("--set", override)]
    assert main(["train", path, "--quiet", "--device", "cpu", *arguments]) == 0
    loaded = load_model(str(corpus / "reverse"))
    pairs = [
        (loaded.source.encode(source), loaded.target.encode(target))
        for source, target in zip(
            (corpus / "dev.s").read_text().splitlines(), (corpus / "dev.t").read_text().splitlines(), strict=True
        )
    ]
    log_probs = loaded.model(pad_pairs(pairs)).sum(1)
    assert log_probs.exp().mean() > 0.8  # chance is below 1e-3


def test_training_on_phrase_pairs_counts_each_pair_once(corpus: Path) -> None:
    table = corpus / "table"
    lines = [f"a{i % 50} ||| b{i % 50} ||| 0.5 ||| ||| {i}" for i in range(50)] + ["a49 ||| b49 ||| 0.1"] * 20
    table.write_text("".join(f"{line}\n" for line in lines))
    path = corpus / "phrases.yaml"
    model = {"type": "rnnencdec", "hidden": 4, "embedding": 3, "maxout": 2}
    data = {"phrase_table": str(table), "hold_out": 10}
    settings = {"folder": str(corpus / "p"), "model": model, "data": data}
    path.write_text(yaml.safe_dump({**settings, "training": {"max_updates": 2, "select_by": "nll"}}))
    assert main(["train", str(path), "--quiet"]) == 0
    counts = load_model(str(corpus / "p")).source.counts
    assert counts is not None
    assert sum(counts[2:]) == 40


def test_adadelta_is_the_recurrence_of_the_paper() -> None:
    generator = np.random.default_rng(1)
    parameter = torch.nn.Parameter(torch.tensor(generator.normal(size=5)))
    optimizer = build_optimizer(TrainingConfig(), [parameter])
    value, squares, steps = parameter.detach().numpy().copy(), np.zeros(5), np.zeros(5)
    for _ in range(4):
        gradient = generator.normal(size=5) * 3
        parameter.grad = torch.tensor(gradient)
        rescale_gradient([parameter], 1.0)
        optimizer.step()
        gradient = gradient / max(1.0, np.linalg.norm(gradient))
        squares = 0.95 * squares + 0.05 * gradient**2
        step = -np.sqrt(steps + 1e-6) / np.sqrt(squares + 1e-6) * gradient
        steps = 0.95 * steps + 0.05 * step**2
        value = value + step
        np.testing.assert_allclose(parameter.detach().numpy(), value, rtol=1e-5)


@pytest.mark.parametrize("penalty", [0.0, 0.3])
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_backpropagation_in_slices_equals_torchs_cross_entropy(smoothing: float, penalty: float) -> None:
    model = new_model(
        RNNsearchConfig(embedding=4, hidden=5, alignment=3, maxout=3, initialisation="glorot"), 9, 8, seed=1
    )
    batch = pad_pairs([([2, 3], [4, 5, 6]), ([7], [2])])
    options = LossOptions(label_smoothing=smoothing, self_normalization=penalty)
    losses = backpropagate(model.double(), batch, options)
    found = {name: parameter.grad for name, parameter in model.named_parameters()}
    model.zero_grad()
    mask = batch.target.mask_BL
    logits = model.generator.logits(model.readouts(batch)[mask])
    expected = torch.nn.functional.cross_entropy(
        logits, batch.target.words_BL[mask], reduction="sum", label_smoothing=smoothing
    )
    expected = expected + penalty * torch.logsumexp(logits, dim=1).square().sum()
    expected.backward()
    assert losses.objective.item() == pytest.approx(expected.item(), rel=1e-6)
    for name, parameter in model.named_parameters():
        torch.testing.assert_close(found[name], parameter.grad, rtol=1e-5, atol=1e-7)
