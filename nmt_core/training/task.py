"""What a run trains on: tasks, each with its minibatches, development sets and share of the updates.

Ordinary training is one task. Several training texts with weights are several tasks of one model; tasks
of several models that share parameters are drawn in the same way (Luong et al. 2016, section 3.4). Which
task an update is of depends on seed and number of the update alone, so that nothing is to be remembered
but how far each task has come.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from torch import nn

from nmt_core.batches.padding import Batch
from nmt_core.model_directory.loaded_model import LoadedModel
from nmt_core.training.data.corpus import BatchPlan, ParallelCorpus, make_batch
from nmt_core.training.data.partitions import Partition, cut_into_partitions
from nmt_core.training.validation import DevelopmentSet


@dataclass(frozen=True)
class Cursor:
    """``groups`` groups of minibatches of ``epoch`` (from 0) are behind it."""

    epoch: int = 0
    groups: int = 0


@dataclass(frozen=True)
class Task:
    """A model, or a view of one that shares its parameters, and what it is trained and measured on.

    ``weight`` is its share of the updates, compared with the weights of the other tasks.
    ``partition_words`` target words are in the model at a time, or all. ``folder`` is where a model of its own is kept,
    beneath that of the run.
    """

    name: str
    loaded: LoadedModel
    corpus: ParallelCorpus
    plan: BatchPlan
    dev: tuple[DevelopmentSet, ...] = ()
    weight: float = 1.0
    partition_words: int | None = None
    folder: str | None = None
    groups_per_epoch: int = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "groups_per_epoch", len(self.plan.epoch(self.corpus, 0)))


class Work(NamedTuple):
    """Minibatches of one update, what is to be in the model for them (None: all), and where it leads.

    ``batches`` are those of this process; ``sentences`` and ``words`` (with ``</s>``) are of all. ``epochs`` are those
    that are over before it, with the part of the present one.
    """

    batches: list[Batch]
    sentences: int
    words: int
    partition: Partition | None
    epochs: float
    after: Cursor


def work_from(task: Task, cursor: Cursor, own: range) -> Iterator[Work]:
    """The updates of a task, epoch after epoch without end, from where its cursor stands.

    ``own`` are the places of this process's minibatches among those of an update.
    """
    while True:
        groups = task.plan.epoch(task.corpus, cursor.epoch)
        for place, partition in _places(task, groups, cursor.groups):
            last = place + 1 == len(groups)
            after = Cursor(cursor.epoch + 1) if last else Cursor(cursor.epoch, place + 1)
            collate = (task.loaded.model.collate, task.loaded.model.collate_targets)
            batches = [
                make_batch(task.corpus, indices.tolist(), *collate) for indices in groups[place][own.start : own.stop]
            ]
            if partition is not None:
                batches = [partition.local(batch) for batch in batches]
            device = task.loaded.model.device
            epochs = cursor.epoch + place / len(groups)
            whole = np.concatenate(groups[place])
            words = task.corpus.target.words_of(whole) + len(whole)
            yield Work([batch.to(device) for batch in batches], len(whole), words, partition, epochs, after)
        cursor = Cursor(cursor.epoch + 1)


def task_of_update(tasks: Sequence[Task], *, seed: int, update: int) -> int:
    """The place of the task that update number ``update`` is of, drawn by the tasks' weights."""
    if len(tasks) == 1:
        return 0
    bounds = np.cumsum([task.weight for task in tasks])
    chance = np.random.default_rng((seed, 1, update)).random() * bounds[-1]
    return int(np.searchsorted(bounds, chance, side="right").clip(max=len(tasks) - 1))


def _places(task: Task, groups: Sequence[Sequence[np.ndarray]], first: int) -> Iterator[tuple[int, Partition | None]]:
    """The places in ``groups`` from ``first`` on, with the partition each is in."""
    if task.partition_words is None:
        yield from ((place, None) for place in range(first, len(groups)))
        return
    sizes = {"source_words": len(task.loaded.source), "target_words": len(task.loaded.target)}
    whole = [np.concatenate(group) for group in groups]
    for partition in cut_into_partitions(task.corpus, whole, words=task.partition_words, **sizes):
        for place in range(max(partition.first, first), partition.first + len(partition.batches)):
            yield place, partition


def parameters_of(tasks: Sequence[Task]) -> dict[str, nn.Parameter]:
    """The parameters of all tasks by name, shared ones once; those that training changes ask for a gradient.

    Names of the first task's model are its own, others stand behind the name of their task.
    """
    found: dict[int, tuple[str, nn.Parameter]] = {}
    for place, task in enumerate(tasks):
        task.loaded.model.requires_grad_(False)
        for name, parameter in task.loaded.model.named_parameters():
            found.setdefault(id(parameter), (f"{task.name}/{name}" if place else name, parameter))
    for task in tasks:
        for parameter in task.loaded.model.trained():
            parameter.requires_grad_(True)
    return dict(found.values())
