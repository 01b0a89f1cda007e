"""Training: exact resumption, the optimiser of the papers, and models that really learn."""

from __future__ import annotations

import math
import os
import signal
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
import yaml

from nmt_core.batches.padding import pad_pairs
from nmt_core.commands.main import main
from nmt_core.layers.losses import Losses, LossSum
from nmt_core.model_directory.loaded_model import load_model
from nmt_core.training.config import TrainingConfig
from nmt_core.training.data.corpus import ParallelCorpus
from nmt_core.training.optimizer import build_optimizer, rescale_gradient
from nmt_core.training.report import Reporter
from nmt_core.training.state import Progress
from nmt_core.training.trainer import StopSignals, Trainer
from nmt_core.training.validation import Measured, Snapshots, Validation


def test_a_run_stopped_before_its_first_validation_goes_on_too(runs, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("whole", "stopped"):
        runs.write(name, max_updates=30, validate_every=1000)
    assert runs.go_on("whole") == 0
    update = Trainer._update

    def stopping(self: Trainer, *work: Any) -> None:
        update(self, *work)
        if self.progress.update == 5:
            os.kill(os.getpid(), signal.SIGTERM)

    with monkeypatch.context() as patch:
        patch.setattr(Trainer, "_update", stopping)
        assert runs.go_on("stopped") == 143
    for _ in range(2):  # the second time nothing is left to do
        assert runs.go_on("stopped") == 0
        runs.assert_equal(runs.state("whole"), runs.state("stopped"))


def test_a_run_is_gone_on_with_where_that_is_asked_for_alone(runs, error_line: Callable[..., str]) -> None:
    path = runs.write("run", max_updates=3)
    assert runs.go_on("run") == 0
    assert "--resume" in error_line(main, ["train", path, "--quiet"])


@pytest.mark.slow
def test_a_model_learns_to_reverse(runs) -> None:
    sizes = {"hidden": 32, "alignment": 32, "maxout": 32, "embedding": 16, "dropout": 0.0}
    how = {"optimizer": "adam", "learning_rate": 0.01, "gradient": "word", "batch_sentences": 20}
    runs.write("reverse", model=sizes, max_updates=700, validate_every=350, average=2, **how)
    assert runs.go_on("reverse") == 0
    loaded = load_model(runs.file("reverse"))
    lines = zip(*(Path(runs.file(f"dev.{side}")).read_text().splitlines() for side in "st"), strict=True)
    pairs = [(loaded.source.encode(source), loaded.target.encode(target)) for source, target in lines]
    assert loaded.model(pad_pairs(pairs)).sum(1).exp().mean() > 0.7  # chance is below 1e-3


def test_training_on_phrase_pairs_counts_each_pair_once(tmp_path: Path) -> None:
    table = tmp_path / "table"
    lines = [f"a{i} ||| b{i} ||| 0.5 ||| ||| {i}" for i in range(50)]
    lines += ["a49 ||| b49 ||| 0.1"] * 20 + ["a50|||b50|||0.1"] * 20
    table.write_text("".join(f"{line}\n" for line in lines))
    path = tmp_path / "phrases.yaml"
    model = {"type": "rnnencdec", "hidden": 4, "embedding": 3, "maxout": 2}
    data = {"phrase_table": str(table), "hold_out": 10}
    settings = {"folder": str(tmp_path / "p"), "model": model, "data": data}
    path.write_text(yaml.safe_dump({**settings, "training": {"max_updates": 2, "select_by": "nll"}}))
    assert main(["train", str(path), "--quiet"]) == 0
    counts = load_model(str(tmp_path / "p")).source.counts
    assert counts is not None
    assert sum(counts[2:]) == 41


@pytest.mark.parametrize(
    ("limits", "said"),
    [
        ({"max_updates": 100}, "3 min left"),
        ({"max_updates": 100, "max_epochs": 2}, "1 min left"),
        ({"max_updates": 100, "max_minutes": 3}, "2 min left"),
        ({"max_minutes": 0.5}, "0 min left"),
        ({}, "1 min"),
    ],
)
def test_the_time_until_the_nearest_end_is_said(
    limits: dict[str, float], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """After a quarter of the updates and an epoch, in a minute."""
    progress = Progress(update=25, epochs=1.0, seconds=60.0)
    Reporter(TrainingConfig(**limits), interval=0.0).update(progress, [], 5, torch.tensor(1.0))
    assert capsys.readouterr().err.endswith(f"words/s  {said}\n")


def test_what_a_run_says(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter([0.0, 2.0, 2.0, 3.0, 4.0])
    monkeypatch.setattr("nmt_core.training.report.time", SimpleNamespace(monotonic=lambda: next(clock)))
    model = SimpleNamespace(parameters=lambda: [torch.zeros(1_200_000)], device="cpu")
    settings = SimpleNamespace(model=SimpleNamespace(type="rnnsearch"))
    loaded: Any = SimpleNamespace(model=model, config=settings, source=range(1200), target="abc")

    def task(name: str, weight: float, count: int, left_out: int) -> Any:
        corpus: Any = ParallelCorpus(range(count), None, left_out)  # type: ignore[arg-type]
        return SimpleNamespace(name=name, weight=weight, loaded=loaded, groups_per_epoch=count, corpus=corpus)

    tasks = [task("a", 2.0, 1, 1000), task("b", 1.0, 2000, 0)]
    first = Validation(1200, 2.0, 31.456, (Measured("b", 1.5, None),))
    words, other = (LossSum(torch.tensor(total), torch.tensor(4)) for total in (10.0, 1.2))
    progress = Progress(update=1200, epochs=1.0, seconds=60.0, kept=first)
    reporter = Reporter(TrainingConfig(), interval=2.0)
    reporter.begin(tasks[:1])
    reporter.begin(tasks)
    reporter.update(progress, [Losses(words.total, {"words": words, "z": other})] * 2, 5000, torch.tensor(0.25))
    reporter.validation(progress, first)
    reporter.validation(progress, Validation(1300, 800.0, None))
    reporter.average(1, first)
    reporter.end("runs/m", first)
    Reporter(TrainingConfig(), quiet=True).end("runs/m", first)
    model_is = "rnnsearch, 1.2 M parameters, 1,200 source and 3 target words"
    left_out = "1 pair (1,000 left out for their length), 1 update an epoch"
    numbers = "BLEU 31.46 (tokenised)  2.000 nats/word, perplexity 7.389; b: 1.500 nats/word, perplexity 4.482"
    assert capsys.readouterr().err.splitlines() == [
        f"{model_is}; {left_out}, on cpu",
        f"{model_is}; a (67%): {left_out}; b (33%): 2,000 pairs, 2,000 updates an epoch, on cpu",
        "update 1,200  epoch 1.00  2.500 nats/word  0.300 z  norm 0.25  2,500 words/s  1 min",
        f"update 1,200  dev: {numbers}  best so far",
        "update 1,200  dev: 800.000 nats/word, perplexity 1.014e+304",
        f"average of the last 1 snapshot  dev: {numbers}",
        f"runs/m: update 1,200, dev: {numbers}",
    ]


def test_counters_and_the_rate_after_validations() -> None:
    """An equal model is no better one; the rate falls after every two that are no better."""
    config, progress = TrainingConfig(select_by="nll", decay_patience=2, decay=0.25), Progress(learning_rate=1.0)
    found: list[tuple[object, ...]] = []
    for update, nats in enumerate([3.0, 4.0, 3.0, 3.5, 2.0, 5.0]):
        progress = progress.after_validation(Validation(update, nats, None), config)
        assert progress.best is not None
        found.append((progress.best.update, progress.since_best, progress.since_decay, progress.learning_rate))
    rates = [(0, 0, 0, 1.0), (0, 1, 1, 1.0), (0, 2, 0, 0.25), (0, 3, 1, 0.25), (4, 0, 0, 0.25), (4, 1, 1, 0.25)]
    assert found == rates


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


def test_a_second_signal_interrupts_and_one_that_is_ignored_stays_so(capfd: pytest.CaptureFixture[str]) -> None:
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        for announced in (True, False):
            with StopSignals(announced=announced) as stop:
                for number, asked in ((signal.SIGINT, 0), (signal.SIGTERM, 15)):
                    os.kill(os.getpid(), number)
                    assert stop.asked == asked
                with pytest.raises(KeyboardInterrupt):
                    os.kill(os.getpid(), signal.SIGTERM)
        assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
        assert capfd.readouterr().err == "stopping after this update; --resume will go on from it\n"
        with ThreadPoolExecutor(1) as pool:
            assert pool.submit(lambda: StopSignals(announced=True).__enter__().asked).result() == 0
    finally:
        signal.signal(signal.SIGINT, before)


def test_snapshots_are_the_best_of_equal_ones_the_first_and_what_is_no_number_is_none_of_them(tmp_path: Path) -> None:
    history = [Validation(n, nats, None) for n, nats in enumerate([math.nan, 2.0, 2.0, 3.0])]
    snapshots = Snapshots(str(tmp_path), TrainingConfig(select_by="nll", keep_best=1))
    os.makedirs(tmp_path / "snapshots" / "notes")
    for place in range(4):
        snapshots.keep(place, (history[: place + 1],), os.mkdir)
    assert sorted(os.listdir(tmp_path / "snapshots")) == ["000000001", "notes"]
    every = Snapshots(str(tmp_path), TrainingConfig(keep_every=4, average=2))
    assert (snapshots._best(history[:1]), snapshots.last(history), every.last(history)) == ([], [], [2, 3])
    assert [number for number in range(1, 9) if every.is_due(number)] == [4, 8]
