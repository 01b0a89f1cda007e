"""From a run's settings to what the trainer needs: vocabularies, tasks, development sets, model."""

from __future__ import annotations

import itertools
import math
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor

from nmt_core.data.aligned_corpus import points_between
from nmt_core.data.corpus import TextPair, encode_corpus
from nmt_core.data.monolingual import MonolingualText
from nmt_core.data.phrases import read_phrase_pairs
from nmt_core.errors import ConfigError
from nmt_core.factors import check_factors, split_factors
from nmt_core.files import read_parallel_lines
from nmt_core.layers.embedding import WordEmbedding
from nmt_core.models.build import build_model, is_language_model, source_factors
from nmt_core.models.carried_lexicon import CarriedLexicon
from nmt_core.models.checkpoint import LoadedModel, load_model
from nmt_core.models.deep_fusion import DeepFusionConfig
from nmt_core.models.deep_lstm import DeepLSTMConfig
from nmt_core.models.embeddings import load_embeddings
from nmt_core.models.folder_config import PLAIN_VERSION, SPARSE_VERSION, FolderConfig
from nmt_core.models.hybrid import HybridConfig
from nmt_core.models.interface import Side, TranslationModel
from nmt_core.preparation.carried import CarriedPreparation, PreparedText
from nmt_core.text.characters import words_by_frequency
from nmt_core.text.lexicon import read_lexicon
from nmt_core.text.lexicon_fit import fit_lexicon
from nmt_core.text.pharaoh import pharaoh
from nmt_core.text.processing import RawText, TextProcessor
from nmt_core.text.vocabulary import Vocabulary, build_vocabulary, split_words
from nmt_core.training.carried import Found, find_preparation
from nmt_core.training.config import RunConfig
from nmt_core.training.first_model import first_model, masked_model
from nmt_core.training.identity import RunIdentity, hash_of_corpus, hash_of_file, hash_of_text, identity
from nmt_core.training.kept_zeros import zeros_of
from nmt_core.training.shared_tasks import shared_tasks
from nmt_core.training.task import Task
from nmt_core.training.validation import DevelopmentSet


@dataclass(frozen=True)
class Prepared:
    """All a training run starts from; ``identity`` says what must be the same on resuming, ``notes`` are for the user.

    ``zeros`` are weights that stay 0, by name.

    The model of the first task is the one that is made.
    """

    tasks: tuple[Task, ...]
    identity: RunIdentity
    notes: tuple[str, ...] = ()
    zeros: Mapping[str, Tensor] = field(default_factory=dict)

    @property
    def loaded(self) -> LoadedModel:
        """The untrained model."""
        return self.tasks[0].loaded


def prepare(run: RunConfig) -> Prepared:
    """Read the text, make or read the vocabularies, and make the untrained model."""
    _check_kind_of_text(run)
    start = None if run.training.start_from is None else load_model(run.training.start_from)
    factored = source_factors(run.model) > 0
    carried = Found() if factored else find_preparation(run.data, None if start is None else start.preparation)
    if carried.preparation is not None:
        run = run.model_copy(update={"text": carried.preparation.text})
    reader = _Reader(run, carried.preparation)
    texts, dev = _texts(run, reader)
    pairs = list(itertools.chain.from_iterable(texts.values()))
    vocabularies = _vocabularies(run, pairs)
    source, target, *factors = vocabularies
    run = _with_characters(run, pairs, start)
    model = first_model(run, vocabularies, start)
    _load_embeddings(run, model, source, target)
    masked = start if run.training.mask_of is None else masked_model(run, vocabularies)
    zeros = _zeros(run, masked)
    config = FolderConfig(
        format_version=SPARSE_VERSION if zeros else PLAIN_VERSION,
        model=run.model,
        text=run.text,
        target_order=run.target_order,
        copying=run.copying,
        trained_with=run.to_mapping(),
    )
    lexicon, remark = _lexicon(run, source, target)
    loaded = LoadedModel(
        model, source, target, config, "untrained", run.folder, carried.preparation, tuple(factors), lexicon
    )
    if loaded.copying is not None:
        loaded.copying.check()
    tasks = (*_tasks(run, texts, dev, loaded), *shared_tasks(run, loaded))
    notes = tuple(note for note in (carried.note, remark, *reader.notes) if note is not None)
    return Prepared(tasks, identity(run, _content(run, tasks, masked)), notes, zeros)


def _tasks(
    run: RunConfig, texts: Mapping[str, list[TextPair]], dev: tuple[DevelopmentSet, ...], loaded: LoadedModel
) -> tuple[Task, ...]:
    """One for each training text; the first is measured."""
    return tuple(
        Task(
            name,
            loaded,
            encode_corpus(
                pairs,
                loaded.encode_text,
                loaded.target.encode,
                max_length=run.data.max_length,
                monolingual=run.data.text is not None,
                order=run.target_order,
                keep_text=loaded.model.reads_text,
                keep_target_text=loaded.model.spells,
            ),
            run.training.plan,
            dev=() if place else dev,
            weight=1.0 if run.data.weights is None else run.data.weights[place],
            partition_words=run.training.partition_words,
        )
        for place, (name, pairs) in enumerate(texts.items())
    )


def _lexicon(run: RunConfig, source: Vocabulary, target: Vocabulary) -> tuple[CarriedLexicon | None, str | None]:
    """That of ``data.lexicon`` in the words of the model, and what was changed for that."""
    path = run.data.lexicon
    if path is None:
        return None, None
    fitted = fit_lexicon(read_lexicon(path), source, target, path=path)
    return CarriedLexicon.of(fitted.lexicon), fitted.remark


def _zeros(run: RunConfig, masked: LoadedModel | None) -> Mapping[str, Tensor]:
    """The weights that stay 0, by name."""
    wanted = run.training.keep_zeros or run.training.mask_of is not None
    if masked is None or not wanted:
        return {}
    return zeros_of(masked, key="training.keep_zeros" if run.training.keep_zeros else "training.mask_of")


def _load_embeddings(run: RunConfig, model: TranslationModel, source: Vocabulary, target: Vocabulary) -> None:
    embeddings: dict[Side, WordEmbedding] = {}
    for side, embedding in model.embeddings():
        embeddings.setdefault(side, embedding)
    if run.training.source_embeddings is not None:
        load_embeddings(run.training.source_embeddings, source, embeddings["source"])
    if run.training.target_embeddings is not None:
        load_embeddings(run.training.target_embeddings, target, embeddings["target"])


def _check_places(run: RunConfig) -> None:
    """Raises ConfigError where training text is longer than what attention by location has places for."""
    model, longest = run.model, run.data.max_length
    if isinstance(model, DeepLSTMConfig) and model.attention == "location" and (longest or math.inf) > model.places:
        raise ConfigError(
            f"model.places: attention by location has {model.places} places, and data.max_length is "
            f"{'null' if longest is None else longest}; make them equal, or data.max_length smaller"
        )


def _check_model(run: RunConfig) -> None:
    """Raises ConfigError where the training asks for what the model does not have, or does not learn."""
    with torch.device("meta"):  # without numbers, and a vocabulary of any size
        model = build_model(run.model, 4, 4, [4] * source_factors(run.model))
    if run.training.partition_words is not None:
        model.word_tables()
    if run.training.minimum_risk is not None and model.spells:
        raise ConfigError(
            f"training.minimum_risk samples words, and a model of type {run.model.type} spells some; leave it out"
        )
    if run.training.guided_alignment is None:
        return
    if not model.attends:
        raise ConfigError(f"training.guided_alignment guides attention, which a model of type {run.model.type} has not")
    if isinstance(run.model, DeepFusionConfig) and run.model.trained == "readout":
        raise ConfigError(
            "training.guided_alignment guides attention, which model.trained: readout does not change; "
            "leave it out, or make the model with nmt-core fuse --trained all"
        )


def _check_kind_of_text(run: RunConfig) -> None:
    """Raises ConfigError where the model or the training asks for what the text does not have."""
    language_model = is_language_model(run.model)
    if isinstance(run.model, DeepFusionConfig) and run.training.start_from is None:
        raise ConfigError(
            "training.start_from is missing; a model of type deep-fusion starts from what nmt-core fuse made"
        )
    _check_model(run)
    _check_places(run)
    if language_model and run.training.minimum_risk is not None:
        raise ConfigError("training.minimum_risk is about translations; a language model makes none")
    if run.data.text is not None and not language_model:
        raise ConfigError(
            f"data.text is for models of type rnnlm or cslm; {run.model.type} needs data.source and data.target"
        )
    if run.data.text is not None and run.training.select_by == "bleu":
        raise ConfigError("data.text has no translations; set training.select_by: nll, or use nmt-core train-lm")
    if language_model and run.training.source_embeddings is not None:
        raise ConfigError("training.source_embeddings: a language model has no source words")
    if run.data.weights is not None and run.training.partition_words is not None:
        raise ConfigError("training.partition_words cuts one text into partitions; leave data.weights out")


# --- reading


class _Reader:
    """The texts of a run, as the model reads them."""

    def __init__(self, run: RunConfig, preparation: CarriedPreparation | None) -> None:
        data = self.data = run.data
        self.words = None if preparation is None else preparation.open_words("target").undo
        self._monolingual = {path: MonolingualText(path) for path in (*(data.text or ()), *(data.dev_text or ()))}
        self._factors = source_factors(run.model)
        self._raw: RawText | None = None
        if data.raw:
            self._raw = TextProcessor(run.text) if preparation is None else PreparedText(preparation)

    @property
    def notes(self) -> list[str]:
        """What to tell the user of lines that were left out."""
        return [text.note for text in self._monolingual.values() if text.note is not None]

    def training_pairs(self, place: int) -> Iterable[TextPair]:
        """The pairs of the training text at this place of the list of files."""
        data = self.data
        if data.text is not None:
            return self._sentences(data.text[place])
        if data.phrase_table is not None:
            return self._phrases(data.phrase_table)
        assert data.source is not None and data.target is not None
        files = (data.source[place], data.target[place])
        return self._pairs(files) if data.alignment is None else self._aligned(files, data.alignment[place])

    def development_sets(self) -> tuple[DevelopmentSet, ...]:
        """Those of the settings, each with the name of its file."""
        data = self.data
        files: list[tuple[str, ...]] = [(path,) for path in data.dev_text or ()]
        files += zip(data.dev_source or (), data.dev_target or (), strict=True)
        found = []
        for place, paths in enumerate(files):
            if data.dev_text:
                pairs = list(self._sentences(*paths))
            elif data.dev_alignment is None:
                pairs = list(self._pairs(paths))
            else:
                pairs = list(self._aligned(paths, data.dev_alignment[place]))
            found.append(self.development_set(pairs, _name([path for path, *_ in files], place)))
        return tuple(found)

    def development_set(self, pairs: Sequence[TextPair], name: str) -> DevelopmentSet:
        """Pairs to validate on. Raises ConfigError where none has words, on both sides unless it is monolingual."""
        if not any(target.strip() and (self.data.text or source.strip()) for source, target, *_ in pairs):
            what = "sentence" if self.data.text else "pair of sentences"
            raise ConfigError(f"{name}: has no {what} that is not empty; there is nothing to validate on")
        points = [pair[2] for pair in pairs if len(pair) == 3] or None
        return DevelopmentSet([pair[0] for pair in pairs], [pair[1] for pair in pairs], self.words, name, points)

    def _sentences(self, path: str) -> Iterator[TextPair]:
        return (self._read("", line) for line in self._monolingual[path])

    def _phrases(self, path: str) -> Iterator[TextPair]:
        for number, source, target in read_phrase_pairs(path):
            check_factors(source, self._factors, path=path, line=number)
            yield source, target

    def _pairs(self, paths: Sequence[str]) -> Iterator[TextPair]:
        for number, lines in enumerate(read_parallel_lines(paths), start=1):
            check_factors(lines[0], self._factors, path=paths[0], line=number)
            yield self._read(*lines)

    def _aligned(self, files: Sequence[str], alignment: str) -> Iterator[TextPair]:
        """Pairs with the points of their alignment, which counts the words as the model reads them."""
        for number, (*lines, points) in enumerate(read_parallel_lines([*files, alignment]), start=1):
            check_factors(lines[0], self._factors, path=files[0], line=number)
            source, target = self._read(*lines)
            sizes = (len(split_words(source)), len(split_words(target)))
            yield source, target, points_between(points, *sizes, path=alignment, line=number)

    def _read(self, source: str, target: str) -> tuple[str, str]:
        if self._raw is None:
            return source, target
        return self._raw.tokenize(source), self._raw.tokenize_target(target)


def _texts(run: RunConfig, reader: _Reader) -> tuple[dict[str, list[TextPair]], tuple[DevelopmentSet, ...]]:
    """The training texts by name, and the development sets; without any, some pairs of the first text are held out."""
    names = run.data.text or run.data.source or (str(run.data.phrase_table),)
    parts = [list(reader.training_pairs(place)) for place in range(len(names))]
    for name, pairs in zip(names, parts, strict=True):
        if not pairs:
            raise ConfigError(f"{name}: is empty; there is nothing to train on")
    if run.data.weights is None:
        parts = [list(itertools.chain.from_iterable(parts))]
    dev = reader.development_sets()
    if not dev:
        parts[0], held_out = _hold_out(parts[0], run, reader.notes)
        dev = (reader.development_set(held_out, "held out"),)
    return {f"text {number}": pairs for number, pairs in enumerate(parts, start=1)}, dev


def _hold_out(pairs: list[TextPair], run: RunConfig, notes: Sequence[str]) -> tuple[list[TextPair], list[TextPair]]:
    """Pairs to train on, and others drawn from among them to validate on."""
    if len(pairs) <= run.data.hold_out:
        remarks = "".join(f"; {note}" for note in notes)
        raise ConfigError(f"{len(pairs)} pairs are too few to hold {run.data.hold_out} out for validation{remarks}")
    held = np.zeros(len(pairs), dtype=bool)
    held[np.random.default_rng(run.training.seed).choice(len(pairs), run.data.hold_out, replace=False)] = True
    kept = [pair for pair, out in zip(pairs, held.tolist(), strict=True) if not out]
    return kept, [pair for pair, out in zip(pairs, held.tolist(), strict=True) if out]


def _name(paths: Sequence[str], place: int) -> str:
    """The name of a file among others, with its number where two have one name."""
    names = [os.path.basename(path) for path in paths]
    return names[place] if names.count(names[place]) == 1 else f"{names[place]} ({place + 1})"


def _vocabularies(run: RunConfig, pairs: Sequence[TextPair]) -> list[Vocabulary]:
    """Those of source, target and source factors; with shared embeddings source and target have one of both."""
    data, count = run.data, source_factors(run.model)
    columns = [[pair[0] for pair in pairs]]
    if count:
        split = [split_factors(pair[0], count) for pair in pairs]
        columns = [[" ".join(words) for words in column] for column in zip(*split, strict=True)]
    source_lines, *factor_lines = columns
    given = data.source_factor_vocabularies or (None,) * count
    factors = [_vocabulary(*one, data.minimum_count) for one in zip(given, factor_lines, strict=True)]
    target_lines = [pair[1] for pair in pairs]
    if not getattr(run.model, "shared_embeddings", False):
        source = _vocabulary(data.source_vocabulary, source_lines, data.minimum_count)
        return [source, _vocabulary(data.target_vocabulary, target_lines, data.minimum_count), *factors]
    if data.source_vocabulary != data.target_vocabulary:
        raise ConfigError("model.shared_embeddings: give one vocabulary (or size) as source_ and target_vocabulary")
    joint = _vocabulary(data.source_vocabulary, itertools.chain(source_lines, target_lines), data.minimum_count)
    return [joint, joint, *factors]


def _vocabulary(given: str | int | None, lines: Iterable[str], minimum_count: int) -> Vocabulary:
    if isinstance(given, str):
        return Vocabulary.load(given)
    return build_vocabulary(lines, size=given, minimum_count=minimum_count)


def _with_characters(run: RunConfig, pairs: Sequence[TextPair], start: LoadedModel | None) -> RunConfig:
    """With the characters that a hybrid model spells with: those of the model it starts from, or of the text."""
    model = run.model
    if not isinstance(model, HybridConfig):
        return run
    if start is not None and isinstance(start.config.model, HybridConfig):
        begun = start.config.model
        model = model.with_characters_of([begun.source_characters], [begun.target_characters])
    sides = words_by_frequency(pair[0] for pair in pairs), words_by_frequency(pair[1] for pair in pairs)
    return run.model_copy(update={"model": model.with_characters_of(*sides)})


def _content(run: RunConfig, tasks: Sequence[Task], start: LoadedModel | None) -> dict[str, str]:
    """Hashes of all that is read, by what the user calls it."""
    loaded = tasks[0].loaded
    found = {
        "the source vocabulary": loaded.source.fingerprint,
        "the target vocabulary": loaded.target.fingerprint,
        **{f"the vocabulary of source factor {n}": one.fingerprint for n, one in enumerate(loaded.factors, start=1)},
        "the training text": " ".join(f"{task.weight} {hash_of_corpus(task.corpus)}" for task in tasks),
        "the development set": " ".join(
            hash_of_text([*dev.sources, *dev.references, *map(pharaoh, dev.points or ())]) for dev in tasks[0].dev
        ),
    }
    for config, task in zip(run.tasks, tasks[1:], strict=False):
        words = task.loaded.source.fingerprint, task.loaded.target.fingerprint
        dev = [hash_of_text([*one.sources, *one.references]) for one in task.dev]
        found[f"task {config.name}"] = " ".join([config.share, *words, *dev])
    if loaded.lexicon is not None:
        found["the lexicon"] = loaded.lexicon.fingerprint
    if start is not None:
        key = "start_from" if run.training.mask_of is None else "mask_of"
        found[f"the model of training.{key}"] = start.fingerprint
    for key in ("source_embeddings", "target_embeddings"):
        path = getattr(run.training, key)
        if path is not None:
            found[f"the file of training.{key}"] = hash_of_file(path)
    return found
