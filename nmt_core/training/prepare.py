"""From a run's settings to what the trainer needs: vocabularies, tasks, development sets, model."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from torch import Tensor

from nmt_core.layers.embedding import WordEmbedding
from nmt_core.model_directory.lexicon import CarriedLexicon
from nmt_core.model_directory.loaded_model import LoadedModel, load_model
from nmt_core.model_directory.settings import PLAIN_VERSION, SPARSE_VERSION, FolderConfig
from nmt_core.model_directory.word_vectors import load_embeddings
from nmt_core.models.build import source_factors
from nmt_core.models.interface import Side, TranslationModel
from nmt_core.text.lexicon import read_lexicon
from nmt_core.text.lexicon_fit import fit_lexicon
from nmt_core.text.vocabulary import Vocabulary
from nmt_core.training.compatibility import check_compatible
from nmt_core.training.config import RunConfig
from nmt_core.training.data.corpus import ParallelCorpus, encode_corpus
from nmt_core.training.data.stored_pairs import StoredPairs
from nmt_core.training.find_preparation import FoundPreparation, find_preparation
from nmt_core.training.first_model import first_model, masked_model
from nmt_core.training.identity import RunIdentity, content_of, identity
from nmt_core.training.kept_zeros import zeros_of
from nmt_core.training.ranks import Ranks
from nmt_core.training.shared_tasks import shared_tasks
from nmt_core.training.task import Task
from nmt_core.training.texts import TextReader, read_texts
from nmt_core.training.validation import DevelopmentSet
from nmt_core.training.vocabularies import read_vocabularies, with_characters


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
    start = None if run.training.start_from is None else load_model(run.training.start_from)
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
    corpora = [ranks.shared(functools.partial(_encoded, run, text, loaded)) for text in texts.training]
    tasks = (*_tasks(run, corpora, dev, loaded), *shared_tasks(run, loaded, ranks))
    notes = tuple(note for note in (carried.note, remark, *reader.notes) if note is not None)
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
        stored=True,
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


def _load_embeddings(run: RunConfig, model: TranslationModel, source: Vocabulary, target: Vocabulary) -> None:
    embeddings: dict[Side, WordEmbedding] = {}
    for side, embedding in model.embeddings():
        embeddings.setdefault(side, embedding)
    if run.training.source_embeddings is not None:
        load_embeddings(run.training.source_embeddings, source, embeddings["source"])
    if run.training.target_embeddings is not None:
        load_embeddings(run.training.target_embeddings, target, embeddings["target"])
