"""From a run's settings to what the trainer needs: vocabularies, corpus, development set, model."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from nmt_core.data.corpus import ParallelCorpus, encode_corpus
from nmt_core.data.monolingual import MonolingualText
from nmt_core.data.phrases import read_phrase_pairs
from nmt_core.errors import ConfigError
from nmt_core.files import read_parallel_lines
from nmt_core.models.build import new_model
from nmt_core.models.checkpoint import FolderConfig, LoadedModel, load_model
from nmt_core.models.deep_fusion import DeepFusionConfig
from nmt_core.models.embeddings import load_embeddings
from nmt_core.models.interface import TranslationModel
from nmt_core.models.rnnlm import RNNLMConfig
from nmt_core.preparation.carried import CarriedPreparation, PreparedText
from nmt_core.text.processing import RawText, TextProcessor
from nmt_core.text.vocabulary import Vocabulary, build_vocabulary
from nmt_core.training.carried import find_preparation
from nmt_core.training.config import RunConfig
from nmt_core.training.validation import DevelopmentSet


@dataclass(frozen=True)
class Prepared:
    """All a training run starts from; ``identity`` changes with settings and data, ``notes`` are for the user."""

    loaded: LoadedModel
    corpus: ParallelCorpus
    dev: DevelopmentSet
    identity: str
    notes: tuple[str, ...] = ()


def prepare(run: RunConfig) -> Prepared:
    """Read the text, make or read the vocabularies, and make the untrained model."""
    _check_kind_of_text(run)
    start = None if run.training.start_from is None else load_model(run.training.start_from)
    carried = find_preparation(run.data, None if start is None else start.preparation)
    if carried.preparation is not None:
        run = run.model_copy(update={"text": carried.preparation.text})
    texts = {path: MonolingualText(path) for path in (run.data.text, run.data.dev_text) if path is not None}
    read = _reader(run, carried.preparation)
    pairs, dev_pairs = _split(list(_training_pairs(run, texts, read)), run, texts, read)
    source = _vocabulary(run.data.source_vocabulary, (pair[0] for pair in pairs), run.data.minimum_count)
    target = _vocabulary(run.data.target_vocabulary, (pair[1] for pair in pairs), run.data.minimum_count)
    corpus = encode_corpus(pairs, source, target, max_length=run.data.max_length, monolingual=bool(texts))
    model = _first_model(run, source, target, start)
    for path, vocabulary, embedding in (
        (run.training.source_embeddings, source, "source_embedding"),
        (run.training.target_embeddings, target, "target_embedding"),
    ):
        if path is not None:
            load_embeddings(path, vocabulary, model.get_submodule(embedding))
    config = FolderConfig(model=run.model, text=run.text, trained_with=run.to_mapping())
    loaded = LoadedModel(model, source, target, config, "untrained", run.folder, carried.preparation)
    words = None if carried.preparation is None else carried.preparation.open_words("target")
    dev = DevelopmentSet([pair[0] for pair in dev_pairs], [pair[1] for pair in dev_pairs], words)
    notes = tuple(note for note in (carried.note, *(text.note for text in texts.values())) if note is not None)
    return Prepared(loaded, corpus, dev, _identity(run, loaded, corpus), notes)


def _first_model(run: RunConfig, source: Vocabulary, target: Vocabulary, start: LoadedModel | None) -> TranslationModel:
    """A model with first values, or with those of ``start_from``."""
    if start is None:
        return new_model(run.model, len(source), len(target), seed=run.training.seed)
    for what, mine, theirs in (
        ("kind of model or size", run.model, start.config.model),
        ("source vocabulary", source.words, start.source.words),
        ("target vocabulary", target.words, start.target.words),
    ):
        if mine != theirs:
            raise ConfigError(
                f"training.start_from: {start.folder} has another {what}; "
                "leave model and vocabularies out of the file, and those of the folder are taken"
            )
    return start.model


def _check_kind_of_text(run: RunConfig) -> None:
    """Raises ConfigError where the model or the training asks for what the text does not have."""
    language_model = isinstance(run.model, RNNLMConfig)
    if isinstance(run.model, DeepFusionConfig) and run.training.start_from is None:
        raise ConfigError(
            "training.start_from is missing; a model of type deep-fusion starts from what nmt-core fuse made"
        )
    if run.data.text is not None and not language_model:
        raise ConfigError(f"data.text is for models of type rnnlm; {run.model.type} needs data.source and data.target")
    if run.data.text is not None and run.training.select_by == "bleu":
        raise ConfigError("data.text has no translations; set training.select_by: nll, or use nmt-core train-lm")
    if language_model and run.training.source_embeddings is not None:
        raise ConfigError("training.source_embeddings: a language model has no source words")


_Reader = Callable[[tuple[str, ...]], tuple[str, ...]]


def _reader(run: RunConfig, preparation: CarriedPreparation | None) -> _Reader:
    """What makes of a pair of lines what the model reads."""
    if not run.data.raw:
        return lambda pair: pair
    text: RawText = TextProcessor(run.text) if preparation is None else PreparedText(preparation)
    return lambda pair: (text.tokenize(pair[0]), text.tokenize_target(pair[1]))


def _training_pairs(run: RunConfig, texts: Mapping[str, MonolingualText], read: _Reader) -> Iterable[tuple[str, ...]]:
    data = run.data
    if data.text is not None:
        return map(read, (("", line) for line in texts[data.text]))
    if data.phrase_table is not None:
        return read_phrase_pairs(data.phrase_table)
    assert data.source is not None and data.target is not None
    return map(read, read_parallel_lines([data.source, data.target]))


def _split(
    pairs: list[tuple[str, ...]], run: RunConfig, texts: Mapping[str, MonolingualText], read: _Reader
) -> tuple[list[tuple[str, ...]], list[tuple[str, ...]]]:
    """Training and development pairs; without development files some training pairs are held out."""
    if not pairs:
        raise ConfigError(f"{run.data.phrase_table or run.data.source}: is empty; there is nothing to train on")
    if run.data.dev_text is not None:
        return pairs, [read(("", line)) for line in texts[run.data.dev_text]]
    if run.data.dev_source is not None and run.data.dev_target is not None:
        dev = list(map(read, read_parallel_lines([run.data.dev_source, run.data.dev_target])))
        if not dev:
            raise ConfigError(f"{run.data.dev_source}: is empty; there is nothing to validate on")
        return pairs, dev
    if len(pairs) <= run.data.hold_out:
        notes = "".join(f"; {text.note}" for text in texts.values() if text.note is not None)
        raise ConfigError(f"{len(pairs)} pairs are too few to hold {run.data.hold_out} out for validation{notes}")
    held = np.zeros(len(pairs), dtype=bool)
    held[np.random.default_rng(run.training.seed).choice(len(pairs), run.data.hold_out, replace=False)] = True
    kept = [pair for pair, out in zip(pairs, held.tolist(), strict=True) if not out]
    return kept, [pair for pair, out in zip(pairs, held.tolist(), strict=True) if out]


def _vocabulary(given: str | int | None, lines: Iterable[str], minimum_count: int) -> Vocabulary:
    if isinstance(given, str):
        return Vocabulary.load(given)
    return build_vocabulary(lines, size=given, minimum_count=minimum_count)


def _identity(run: RunConfig, loaded: LoadedModel, corpus: ParallelCorpus) -> str:
    """What must be the same for a run to be resumed; when it ends may change."""
    ends = {"max_epochs", "max_updates", "max_minutes", "patience", "tensorboard"}
    settings = run.to_mapping()
    settings.pop("folder")
    settings["training"] = {key: value for key, value in settings["training"].items() if key not in ends}
    settings["data"] = {
        key: value for key, value in settings["data"].items() if not isinstance(value, str) or os.sep not in value
    }
    digest = hashlib.sha256(json.dumps(settings, sort_keys=True).encode())
    for part in (corpus.source, corpus.target):
        digest.update(part.ids.tobytes())
        digest.update(part.starts.tobytes())
    return f"{digest.hexdigest()[:16]} {loaded.source.fingerprint} {loaded.target.fingerprint}"
