"""What a run trains on: tasks, each with its minibatches, development sets and share of the updates.

Ordinary training is one task. Several training texts with weights are several tasks of one model. Tasks of several
models that share parameters are drawn in the same way (Luong et al. 2016, section 3.4). The task of an update depends
on seed and number of the update alone, so a run remembers only how far each task has come.

Tasks that share an encoder, a decoder or both stand next to a reference, the task of ``data``. Epochs, learning rates,
selection and end are the reference's, and its ratio is 1. Recurrent layers and their word vectors are shared, with the
decoder its output layer.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from torch import nn

from nmt_core.base.errors import ConfigError
from nmt_core.base.words import split_words
from nmt_core.batches.padding import Batch
from nmt_core.files import read_parallel_lines, read_text_lines
from nmt_core.model_directory.loaded_model import LoadedModel
from nmt_core.model_directory.settings import FolderConfig
from nmt_core.models.build import new_model
from nmt_core.models.deep_lstm import DeepLSTM
from nmt_core.training.config import RunConfig
from nmt_core.training.data.config import Files, TaskConfig
from nmt_core.training.data.corpus import BatchPlan, ParallelCorpus, encode_corpus, make_batch
from nmt_core.training.data.partitions import Partition, cut_into_partitions
from nmt_core.training.data.stored import store_pairs
from nmt_core.training.data.vocabularies import read_vocabulary
from nmt_core.training.processes import Ranks
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


FOLDER = "tasks"
_LEAST_WORDS = 4  # of a sentence that is cut into halves


def shared_tasks(run: RunConfig, reference: LoadedModel, ranks: Ranks) -> tuple[Task, ...]:
    """The tasks beside the reference. Raises ConfigError for a task without text, InputError for files."""
    return tuple(_task(run, config, reference, ranks, number) for number, config in enumerate(run.tasks, start=1))


def _task(run: RunConfig, config: TaskConfig, reference: LoadedModel, ranks: Ranks, number: int) -> Task:
    where = f"tasks.{config.name}"
    text = ranks.shared(lambda: store_pairs(_pairs(config, (config.source, config.target))))
    source, target = reference.source, reference.target
    if not config.shares("encoder"):
        source = read_vocabulary(config.source_vocabulary, text.sources())
    if not config.shares("decoder"):
        target = read_vocabulary(config.target_vocabulary, text.targets())
    model = new_model(run.model, len(source), len(target), seed=run.training.seed + number)
    assert isinstance(model, DeepLSTM) and isinstance(reference.model, DeepLSTM)
    if config.shares("encoder"):
        model.take_encoder(reference.model)
    if config.shares("decoder"):
        model.take_decoder(reference.model)
    settings = FolderConfig(
        model=run.model, text=run.text, target_order=run.target_order, trained_with=run.to_mapping()
    )
    folder = os.path.join(FOLDER, config.name)
    loaded = LoadedModel(model, source, target, settings, "untrained", os.path.join(run.folder, folder))
    try:
        corpus = ranks.shared(
            lambda: encode_corpus(
                text,
                loaded.encode_text,
                target.encode,
                max_length=run.data.max_length,
                order=run.target_order,
            )
        )
    except ConfigError as error:
        raise ConfigError(f"{where}: {error}") from error
    dev = list(_pairs(config, (config.dev_source, config.dev_target)))
    if config.dev_source is not None and not any(source.strip() and target.strip() for source, target in dev):
        least = f" of {_LEAST_WORDS} words or more" if config.kind == "halves" else ""
        raise ConfigError(f"{where}.dev_source: has no sentence{least} to measure the task on; leave it out")
    sets: tuple[DevelopmentSet, ...] = ()
    if dev:
        sources, references = zip(*dev, strict=True)
        sets = (DevelopmentSet(sources, references, name=config.name, bleu=config.metric == "bleu"),)
    return Task(config.name, loaded, corpus, run.training.plan, dev=sets, weight=config.ratio, folder=folder)


def _pairs(config: TaskConfig, files: tuple[Files | None, Files | None]) -> Iterator[tuple[str, str]]:
    """The pairs of both sides; of one side a sentence and itself, or its halves."""
    sources, targets = files
    if sources is None:
        return
    if targets is not None:
        for paths in zip(sources, targets, strict=True):
            yield from ((source, target) for source, target in read_parallel_lines(paths))
        return
    lines = itertools.chain.from_iterable(map(read_text_lines, sources))
    yield from ((line, line) for line in lines) if config.kind == "autoencoder" else halves(lines)


def halves(lines: Iterable[str]) -> Iterator[tuple[str, str]]:
    """The first half of every sentence of four words or more, and the rest, which it predicts (section 3.3)."""
    for line in lines:
        words = split_words(line)
        if len(words) >= _LEAST_WORDS:
            middle = (len(words) + 1) // 2
            yield " ".join(words[:middle]), " ".join(words[middle:])
