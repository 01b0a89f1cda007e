"""Tasks whose models have an encoder, a decoder or both in common with that of a run (Luong et al. 2016, section 3).

The task of ``data`` is the reference: epochs, learning rates, selection and end are its. Every update is of one task,
drawn by the ratios, 1 for the reference (section 3.4). What is shared are recurrent layers and their word vectors, with
the decoder its output layer.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterable, Iterator

from nmt_core.base.errors import ConfigError
from nmt_core.base.words import split_words
from nmt_core.files import read_parallel_lines, read_text_lines
from nmt_core.model_directory.loaded_model import LoadedModel
from nmt_core.model_directory.settings import FolderConfig
from nmt_core.models.build import new_model
from nmt_core.models.deep_lstm import DeepLSTM
from nmt_core.training.config import RunConfig
from nmt_core.training.data.corpus import encode_corpus
from nmt_core.training.data.stored_pairs import store_pairs
from nmt_core.training.data_config import Files, TaskConfig
from nmt_core.training.ranks import Ranks
from nmt_core.training.task import Task
from nmt_core.training.validation import DevelopmentSet
from nmt_core.training.vocabularies import read_vocabulary

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
                stored=True,
            )
        )
    except ConfigError as error:
        raise ConfigError(f"{where}: {error}") from error
    dev = list(_pairs(config, (config.dev_source, config.dev_target)))
    if config.dev_source is not None and not dev:
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
