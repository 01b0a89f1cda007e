"""Tasks that share parts of a deep LSTM (Luong et al. 2016): what is shared, whose updates change what, exact ends."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import yaml

from nmt_core.commands.main import main
from nmt_core.model_directory.loaded_model import load_model
from nmt_core.models.build import new_model
from nmt_core.training.config import RunConfig
from nmt_core.training.data.vocabularies import read_vocabulary
from nmt_core.training.report import Reporter
from nmt_core.training.start import prepare
from nmt_core.training.tasks import Task, halves, task_of_update
from nmt_core.training.trainer import Trainer

MODEL = {"type": "deep-lstm", "depth": 2, "hidden": 8, "embedding": 6, "dropout": 0.2, "init_range": 0.3}
SGD = {"optimizer": "sgd", "learning_rate": 0.5, "gradient": "sentence", "select_by": "nll"}


def write(runs, folder: str, tasks: list[dict[str, Any]], **training: Any) -> str:
    return runs.write(folder, others={"model": MODEL, "tasks": tasks}, **{**SGD, **training})


def several(runs) -> list[dict[str, Any]]:
    """One task of every kind, and every way to share."""
    words = {"source": runs.file("other.s"), "dev_source": runs.file("dev.s")}
    both = {**words, "target": runs.file("other.t"), "dev_target": runs.file("dev.t"), "metric": "bleu"}
    return [
        {"name": "fr", "share": "encoder", "ratio": 0.5, **both, "target_vocabulary": 8},
        {"name": "copy-y", "kind": "autoencoder", "share": "decoder", "ratio": 0.5, "source": runs.file("other.t")},
        {"name": "halves", "kind": "halves", "share": "both", "ratio": 0.25, **words},
    ]


def test_what_is_shared_is_one_and_every_folder_is_a_model(runs, capsys: pytest.CaptureFixture[str]) -> None:
    write(runs, "run", several(runs), max_updates=12)
    assert runs.go_on("run") == 0
    reference, *others = (
        load_model(runs.file(f"run/{name}")) for name in ("", "tasks/fr", "tasks/copy-y", "tasks/halves")
    )
    own = reference.model.state_dict()
    for loaded, shared in zip(others, ("encoder", "decoder", "both"), strict=True):
        for name, tensor in loaded.model.state_dict().items():
            side = "encoder" if name.startswith(("encoder.", "source_embedding.", "reader.")) else "decoder"
            alike = tensor.shape == own[name].shape and torch.equal(tensor, own[name])
            assert alike == (shared in (side, "both")) or not tensor.any(), name
    capsys.readouterr()
    for name in ("fr", "copy-y", "halves"):
        folder = runs.file(f"run/tasks/{name}")
        assert main(["score", "--quiet", "--model", folder, runs.file("dev.s"), runs.file("dev.t")]) == 0
        assert main(["decode", "--quiet", "--model", folder, "--input", runs.file("dev.s")]) == 0
        assert len(capsys.readouterr().out.splitlines()) == 24


ADAM = {"optimizer": "adam", "learning_rate": 0.01}


@pytest.mark.parametrize("training", [{}, {**ADAM, "average": 2, "microbatches": 2}])
def test_a_run_of_tasks_resumes_exactly(runs, training: dict[str, Any]) -> None:
    tasks = {"model": MODEL, "tasks": several(runs)}
    runs.assert_resumes_exactly(updates=25, others=tasks, **{**SGD, **training})
    for name in ("", "tasks/fr/", "tasks/copy-y/", "tasks/halves/"):
        runs.assert_equal(runs.model(f"whole/{name}"), runs.model(f"parts/{name}"))
    history = runs.progress("whole")["history"]
    assert [one["name"] for one in history[0]["others"]] == ["fr", "halves"]


@pytest.mark.slow
@pytest.mark.usefixtures("quick_processes")
def test_processes_share_the_updates_of_tasks(runs) -> None:
    for processes in ("1", "2"):
        path = write(runs, processes, several(runs), max_updates=12, microbatches=2, **ADAM)
        assert main(["train", path, "--device", "cpu", "--quiet", "--processes", processes]) == 0
    runs.assert_equal(runs.state("1"), runs.state("2"))


def with_own_model(runs, folder: str, updates: int) -> Trainer:
    """The reference, and a task with nothing in common with it."""
    settings = yaml.safe_load(Path(write(runs, folder, [], max_updates=updates)).read_text())
    run = RunConfig.from_mapping(settings, origin="test")
    prepared = prepare(run)
    reference = prepared.tasks[0]
    assert (len(reference.corpus), reference.groups_per_epoch) == (240, 24)  # of ten pairs
    model = new_model(run.model, len(reference.loaded.source), len(reference.loaded.target), seed=5)
    other = dataclasses.replace(reference.loaded, model=model)
    second = Task("other", other, reference.corpus, run.training.plan, weight=0.5)
    Path(run.folder).mkdir(exist_ok=True)
    reporter = Reporter(run.training, quiet=True)
    trainer = Trainer([reference, second], run.training, run=prepared.identity, reporter=reporter)
    trainer.train()
    return trainer


def test_with_nothing_shared_the_reference_is_that_of_a_single_run(runs) -> None:
    trainer = with_own_model(runs, "two", 20)
    done = trainer.progress.cursors["text 1"]
    write(runs, "one", [], max_updates=done.epoch * 24 + done.groups)
    assert runs.go_on("one") == 0
    two, one = runs.state("two"), runs.state("one")
    names = [name for name in one if name.startswith("parameter.")]
    assert names
    assert all(torch.equal(one[name], two[name]) for name in names)


def test_parameters_of_a_task_change_in_its_updates_only(runs, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(runs, "run", several(runs)[:2], max_updates=14, optimizer="adam", learning_rate=0.01)
    run = RunConfig.from_mapping(yaml.safe_load(Path(path).read_text()), origin="test")
    prepared = prepare(run)
    Path(run.folder).mkdir(exist_ok=True)
    reporter = Reporter(run.training, quiet=True)
    trainer = Trainer(prepared.tasks, run.training, run=prepared.identity, reporter=reporter)
    update, seen = trainer._update, set()

    def watched(place: int, work: Any) -> None:
        before = {name: value.detach().clone() for name, value in trainer.trained.items()}
        update(place, work)
        changed = {name for name, value in trainer.trained.items() if not torch.equal(value, before[name])}
        seen.add(place)
        of_others = {task.name for number, task in enumerate(prepared.tasks) if number != place}
        assert changed
        assert not {name for name in changed if name.partition("/")[0] in of_others}
        encoder = {name for name in changed if name.startswith("encoder.")}
        assert bool(encoder) == (place != 2)  # the autoencoder has an encoder of its own

    monkeypatch.setattr(trainer, "_update", watched)
    trainer.train()
    assert seen == {0, 1, 2}


def test_tasks_are_drawn_by_their_ratios(runs) -> None:
    path = write(runs, "run", several(runs), max_updates=1)
    tasks = prepare(RunConfig.from_mapping(yaml.safe_load(Path(path).read_text()), origin="test")).tasks
    updates = 4000
    drawn = [task_of_update(tasks, seed=3, update=number) for number in range(updates)]
    for place, ratio in enumerate((1.0, 0.5, 0.5, 0.25)):
        share = ratio / 2.25
        assert abs(drawn.count(place) - updates * share) < 4 * math.sqrt(updates * share * (1 - share))


def test_an_autoencoder_learns_its_sentence(runs) -> None:
    Path(runs.file("x")).write_text("w1 w5 w2 w2 w7\n")
    task = {"name": "x", "kind": "autoencoder", "share": "encoder", "ratio": 20.0}
    task |= {"source": runs.file("x"), "dev_source": runs.file("x")}
    write(runs, "run", [task], max_updates=60, validate_every=60, optimizer="adam", learning_rate=0.05)
    assert runs.go_on("run", "model.dropout=0") == 0
    (last,) = runs.progress("run")["history"]
    assert math.exp(last["others"][0]["nats_per_word"]) < 1.1


def test_a_vocabulary_of_a_task_has_words_that_occur_once() -> None:
    assert list(read_vocabulary(None, ["a b", "b"]).words)[-2:] == ["b", "a"]


def test_halves() -> None:
    lines = ["a b c d e", "a b c", "a  b c d", ""]
    assert list(halves(lines)) == [("a b c", "d e"), ("a b", "c d")]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"ratio": 0}, "'tasks.0.ratio': Input should be greater than 0 (found 0)"),
        ({"source_vocabulary": 9}, "source_vocabulary: the encoder is shared with its words"),
        ({"target": None}, "kind: pairs has source and target"),
        ({"dev_target": None}, "dev_source and dev_target"),
        ({"name": "../x"}, "'tasks.0.name'"),
        ({"sharing": 1}, "unknown key"),
        ({"source": "nowhere.s"}, "nowhere.s: cannot be read"),
    ],
)
def test_a_task_that_cannot_be_is_one_line(
    runs, error_line: Callable[..., str], change: dict[str, Any], message: str
) -> None:
    write(runs, "run", [{**several(runs)[0], **change}], max_updates=2)
    assert message in error_line(runs.go_on, "run")


@pytest.mark.parametrize(
    ("kind", "text", "message"),
    [
        ("autoencoder", "", "has no sentence to"),
        ("autoencoder", "\n \n", "has no sentence to"),
        ("halves", "w1 w2 w3\n", "of 4 words or more"),
    ],
)
def test_a_task_that_nothing_would_measure_is_one_line(
    runs, error_line: Callable[..., str], kind: str, text: str, message: str
) -> None:
    Path(runs.file("few")).write_text(text)
    task = {"name": "x", "kind": kind, "share": "both", "ratio": 1.0}
    write(runs, "run", [{**task, "source": runs.file("other.s"), "dev_source": runs.file("few")}], max_updates=2)
    line = error_line(runs.go_on, "run")
    assert "tasks.x.dev_source: " in line and message in line


def test_another_share_is_another_run(runs, error_line: Callable[..., str]) -> None:
    write(runs, "run", several(runs)[2:], max_updates=2)
    assert runs.go_on("run") == 0
    write(runs, "run", [{**several(runs)[2], "share": "encoder"}], max_updates=4)
    assert "another run" in error_line(runs.go_on, "run")
