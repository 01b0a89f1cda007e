"""Several tasks whose models share parameters (Luong et al. 2016): one encoder each, one decoder."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest
import torch
import yaml

from nmt_core.models.build import new_model
from nmt_core.training.config import RunConfig
from nmt_core.training.report import Reporter
from nmt_core.training.start import Prepared, prepare
from nmt_core.training.tasks import Task, parameters_of
from nmt_core.training.trainer import Trainer

OWN = ("copying/source_embedding", "copying/encoder", "copying/backward_encoder")


def two_tasks(runs, folder: str, **training: object) -> tuple[Prepared, list[Task], RunConfig]:
    """Reversing, and copying the targets with an encoder of its own and the same decoder."""
    runs.write(folder, **training)
    run = RunConfig.from_mapping(yaml.safe_load(Path(runs.file(f"{folder}.yaml")).read_text()), origin="test")
    prepared = prepare(run)
    first = prepared.tasks[0]
    other = new_model(run.model, len(first.loaded.source), len(first.loaded.target), seed=9)
    for name, module in first.loaded.model.named_children():
        if f"copying/{name}" not in (*OWN, "copying/source_encoder"):
            setattr(other, name, module)
    other.stack, other.generator = first.loaded.model.stack, first.loaded.model.generator
    loaded = dataclasses.replace(first.loaded, model=other)
    copying = dataclasses.replace(first.corpus, source=first.corpus.target)
    second = Task("copying", loaded, copying, run.training.plan, dev=first.dev, weight=0.5)
    Path(run.folder).mkdir(exist_ok=True)
    return prepared, [first, second], run


def trained(runs, folder: str, *updates: int, **training: object) -> Trainer:
    for number in updates:
        prepared, tasks, run = two_tasks(runs, folder, max_updates=number, **training)
        reporter = Reporter(run.training, folder=run.folder, quiet=True)
        trainer = Trainer(tasks, run.training, run=prepared.identity, reporter=reporter)
        if number != updates[0]:
            trainer.resume()
        trainer.train()
    return trainer


def test_shared_parameters_are_trained_once_and_others_by_their_task(runs) -> None:
    _, tasks, _ = two_tasks(runs, "names")
    names = parameters_of(tasks)
    own = [name for name in names if name.startswith("copying/")]
    assert own
    assert all(name.split(".")[0] in OWN for name in own)
    assert len({id(parameter) for parameter in names.values()}) == len(names)
    assert len(names) - len(own) == len(list(tasks[0].loaded.model.named_parameters()))


@pytest.mark.parametrize("training", [{}, {"optimizer": "adam", "learning_rate": 0.01, "ema": 0.9}])
def test_tasks_resume_exactly_and_all_are_measured(runs, training: dict[str, object]) -> None:
    trained(runs, "whole", 25, **training)
    trained(runs, "parts", 7, 16, 25, **training)
    whole, parts = runs.state("whole"), runs.state("parts")
    assert whole.keys() == parts.keys()
    assert any(name.startswith("parameter.copying/") for name in whole)
    for name, tensor in whole.items():
        assert torch.equal(tensor, parts[name]), name
    counters = json.loads(Path(runs.file("whole/training.json")).read_text())
    assert counters["cursors"].keys() == {"text 1", "copying"}
    assert all(len(entry["others"]) == 1 for entry in counters["history"])
    done = [cursor["epoch"] * 24 + cursor["groups"] for cursor in counters["cursors"].values()]
    assert sum(done) == 25
    assert done[0] > done[1] > 0


def test_only_the_model_of_the_first_task_is_in_the_folder(runs) -> None:
    trainer = trained(runs, "run", 6)
    assert runs.model("run").keys() == dict(trainer.model.named_parameters()).keys()
