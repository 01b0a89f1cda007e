"""From a run's settings to what the trainer needs: vocabularies, tasks, development sets, the first model."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from torch import Tensor

from nmt_core.base.errors import ConfigError
from nmt_core.config import dotted
from nmt_core.model_directory.lexicon import CarriedLexicon
from nmt_core.model_directory.loaded_model import LoadedModel, read_model
from nmt_core.model_directory.settings import FolderConfig
from nmt_core.models.build import AnyConfig, build_model, new_model, source_factors
from nmt_core.models.interface import TranslationModel
from nmt_core.text.lexicon import fit_lexicon, read_lexicon
from nmt_core.text.vocabulary import Vocabulary
from nmt_core.training.config import RunConfig, check_compatible
from nmt_core.training.data.corpus import ParallelCorpus, encode_corpus
from nmt_core.training.data.preparation import FoundPreparation, find_preparation
from nmt_core.training.data.stored import StoredPairs
from nmt_core.training.data.texts import TextReader, read_texts
from nmt_core.training.data.vocabularies import read_vocabularies, with_characters
from nmt_core.training.fingerprint import RunIdentity, content_of, identity
from nmt_core.training.optimizer import zeros_of
from nmt_core.training.processes import Ranks
from nmt_core.training.tasks import Task, shared_tasks
from nmt_core.training.validation import DevelopmentSet


@dataclass(frozen=True)
class Prepared:
    """All a training run starts from; ``identity`` says what must be the same on resuming, ``notes`` are for the user.

    ``zeros`` are weights that stay 0, by name. The model of the first task is the one that is made.
    """

    tasks: tuple[Task, ...]
    identity: RunIdentity
    notes: tuple[str, ...] = ()
    zeros: Mapping[str, Tensor] = field(default_factory=dict)

    @property
    def loaded(self) -> LoadedModel:
        """The untrained model."""
        return self.tasks[0].loaded


def prepare(run: RunConfig, ranks: Ranks | None = None) -> Prepared:
    """Read the text, make or read the vocabularies, and make the untrained model, in each of the processes."""
    check_compatible(run)
    ranks = ranks or Ranks()
    start = None if run.training.start_from is None else read_model(run.training.start_from)
    factored = source_factors(run.model) > 0
    carried = (
        FoundPreparation() if factored else find_preparation(run.data, None if start is None else start.preparation)
    )
    if carried.preparation is not None:
        run = run.model_copy(update={"text": carried.preparation.text})
    reader = TextReader(run, carried.preparation)
    texts = ranks.shared(lambda: read_texts(run, reader))
    dev = reader.development_sets() or (reader.development_set(texts.held_out, "held out"),)
    vocabularies = read_vocabularies(run, texts.training)
    source, target, *factors = vocabularies
    run = with_characters(run, texts.training, start)
    model = first_model(run, vocabularies, start)
    masked = start if run.training.mask_of is None else masked_model(run, vocabularies)
    zeros = _zeros(run, masked)
    config = FolderConfig(
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
    corpora = [ranks.shared(functools.partial(_encoded, run, text, loaded)) for text in texts.training]
    tasks = (*_tasks(run, corpora, dev, loaded), *shared_tasks(run, loaded, ranks))
    notes = tuple(note for note in (carried.note, remark) if note is not None)
    return Prepared(tasks, identity(run, content_of(run, tasks, masked)), notes, zeros)


def _encoded(run: RunConfig, text: StoredPairs, loaded: LoadedModel) -> ParallelCorpus:
    return encode_corpus(
        text,
        loaded.encode_text,
        loaded.target.encode,
        max_length=run.data.max_length,
        monolingual=run.data.text is not None,
        order=run.target_order,
        keep_text=loaded.model.reads_text,
        keep_target_text=loaded.model.spells,
    )


def _tasks(
    run: RunConfig, corpora: Sequence[ParallelCorpus], dev: tuple[DevelopmentSet, ...], loaded: LoadedModel
) -> tuple[Task, ...]:
    """One for each training text; the first is measured."""
    return tuple(
        Task(
            f"text {place + 1}",
            loaded,
            corpus,
            run.training.plan,
            dev=() if place else dev,
            weight=1.0 if run.data.weights is None else run.data.weights[place],
            partition_words=run.training.partition_words,
        )
        for place, corpus in enumerate(corpora)
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


_NOT_PARAMETERS = {  # settings that leave what a trained model computes as it is
    "dropout",
    "embedding_dropout",
    "initialisation",
    "init_range",
    "trained",
    "character_weight",
    "characters",
}


def first_model(run: RunConfig, vocabularies: Sequence[Vocabulary], start: LoadedModel | None) -> TranslationModel:
    """A model with first values, or with those of ``start_from``. Raises ConfigError where that is another model.

    ``vocabularies`` are those of source, target and source factors.
    """
    source_words, target_words, *factor_words = map(len, vocabularies)
    if start is None:
        return new_model(run.model, source_words, target_words, factor_words, seed=run.training.seed)
    different = _difference(run, vocabularies, start)
    if different is not None:
        raise ConfigError(
            f"training.start_from: {start.folder} has another {different}; "
            "leave model, vocabularies and target_order out of the file, and those of the directory are taken"
        )
    if run.model == start.config.model:
        return start.model
    model = build_model(run.model, source_words, target_words, factor_words)
    model.load_state_dict(start.model.state_dict())
    return model


def masked_model(run: RunConfig, vocabularies: Sequence[Vocabulary]) -> LoadedModel:
    """The model of ``training.mask_of``. Raises ConfigError where it is another than that of the run."""
    assert run.training.mask_of is not None
    masked = read_model(run.training.mask_of)
    different = _difference(run, vocabularies, masked)
    if different is not None:
        raise ConfigError(
            f"training.mask_of: {masked.folder} has another {different}; "
            "give its settings of the model, and its vocabularies as data.source_vocabulary and data.target_vocabulary"
        )
    return masked


def _difference(run: RunConfig, vocabularies: Sequence[Vocabulary], other: LoadedModel) -> str | None:
    """What a model and that of the run do not have in common."""
    setting = _different_setting(run.model, other.config.model)
    if setting is not None:
        return setting
    names = ("source vocabulary", "target vocabulary", *(["vocabulary of a source factor"] * len(other.factors)))
    for what, mine, theirs in zip(names, vocabularies, other.vocabularies, strict=True):
        if mine.words != theirs.words:
            return what
    if run.copying != other.config.copying:
        return "copying"
    return "target_order" if run.target_order != other.config.target_order else None


def _different_setting(mine: AnyConfig, theirs: AnyConfig) -> str | None:
    """The first setting of the parameters, or of what is computed with them, in which two models differ."""
    if mine.type != theirs.type:
        return f"model.type ({theirs.type}, not {mine.type})"
    others = dotted(theirs.to_mapping(), "model.")
    for key, value in dotted(mine.to_mapping(), "model.").items():
        if key.rpartition(".")[2] not in _NOT_PARAMETERS and value != others[key]:
            return f"{key} ({others[key]}, not {value})"
    return None
