"""How good a model is on development sets: nats per word, and BLEU of its translations; which models are kept.

Models that are kept next to the best one are model directories: ``DIRECTORY/snapshots/000001000``.
"""

from __future__ import annotations

import math
import os
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import sacrebleu
import torch

from nmt_core.base.interfaces import SentencePair
from nmt_core.batches.padding import Batch
from nmt_core.inference.output.copies import annotated_pair
from nmt_core.inference.search.config import DecodingConfig
from nmt_core.inference.translator import Translator
from nmt_core.model_directory.loaded_model import LoadedModel
from nmt_core.models.interface import TranslationModel
from nmt_core.text.alignment import Points
from nmt_core.training.config import TrainingConfig
from nmt_core.training.data.corpus import batches_in_order, encode_corpus


@dataclass(frozen=True)
class Loss:
    """A summed loss in nats, and the number of words it was summed over."""

    total: float
    words: int

    def __add__(self, other: Loss) -> Loss:
        return Loss(self.total + other.total, self.words + other.words)

    @property
    def per_word(self) -> float:
        """Nats per target word, ``</s>`` counted."""
        return self.total / max(self.words, 1)


NOTHING = Loss(0.0, 0)


@torch.no_grad()
def negative_log_likelihood(model: TranslationModel, batch: Batch) -> Loss:
    """The batch's loss without smoothing."""
    total = -model(batch).double().sum().item()
    return Loss(total, batch.target.places_2N.shape[1])


@dataclass(frozen=True)
class Measured:
    """What a model reached on one development set; BLEU is of tokenised, cased text."""

    name: str
    nats_per_word: float
    bleu: float | None


@dataclass(frozen=True)
class Validation:
    """What was measured after an update: on the first development set, which decides, and on the ``others``."""

    update: int
    nats_per_word: float
    bleu: float | None
    others: tuple[Measured, ...] = ()

    def score(self, by: str) -> float:
        """The number that is to rise; minus infinity for a model whose probabilities are not numbers."""
        if not math.isfinite(self.nats_per_word):
            return -math.inf
        if by == "bleu":
            assert self.bleu is not None
            return self.bleu
        return -self.nats_per_word

    def better_than(self, other: Validation | None, by: str) -> bool:
        """Whether this model is to be preferred; without ``other``, whether it can be used at all."""
        return self.score(by) > (-math.inf if other is None else other.score(by))


@dataclass(frozen=True)
class DevelopmentSet:
    """Tokenised sources and references; sources of monolingual text are empty.

    ``words`` makes words again of subwords, so that BLEU compares words. ``points`` are the alignments of the pairs,
    for models of annotated text. Without ``bleu`` translations are not measured.
    """

    sources: Sequence[str]
    references: Sequence[str]
    words: Callable[[str], str] | None = None
    name: str = "dev"
    points: Sequence[Points] | None = None
    bleu: bool = True

    def measure(self, loaded: LoadedModel, *, beam: int | None) -> Measured:
        """Measure a model; BLEU only if a ``beam`` is given."""
        pairs = zip(self.sources, self._targets(loaded), strict=True)
        model = loaded.model
        corpus = encode_corpus(
            pairs,
            loaded.encode_text,
            loaded.target.encode,
            monolingual=not any(self.sources),
            order=loaded.config.target_order,
            keep_text=model.reads_text,
            keep_target_text=model.spells,
        )
        collate = {"collate": model.collate, "collate_targets": model.collate_targets}
        batches = batches_in_order(corpus, tokens=2000, **collate)
        loss = sum((negative_log_likelihood(model, batch.to(model.device)) for batch in batches), NOTHING)
        return Measured(self.name, loss.per_word, None if beam is None or not self.bleu else self._bleu(loaded, beam))

    def _targets(self, loaded: LoadedModel) -> Sequence[str]:
        """The references as the model reads them."""
        copying = loaded.copying
        if copying is None:
            return self.references
        points: Sequence[Points | None] = self.points or [None] * len(self.sources)
        pairs = (SentencePair(*pair) for pair in zip(self.sources, self.references, strict=True))
        return [annotated_pair(copying, pair, links).target for pair, links in zip(pairs, points, strict=True)]

    def _bleu(self, loaded: LoadedModel, beam: int) -> float:
        translator = Translator([loaded], config=DecodingConfig(beam=beam))
        words = self.words or str
        hypotheses = [words(found[0].text) for found in translator.translate(list(self.sources))]
        references = [words(reference) for reference in self.references]
        return float(sacrebleu.corpus_bleu(hypotheses, [references], tokenize="none", force=True).score)


def validate(sets: Sequence[tuple[LoadedModel, DevelopmentSet]], *, update: int, beam: int | None) -> Validation:
    """Measure models on their development sets, of which the first decides."""
    first, *others = [dev.measure(loaded, beam=beam) for loaded, dev in sets]
    return Validation(update, first.nats_per_word, first.bleu, tuple(others))


SNAPSHOTS = "snapshots"
_KEPT = "kept"  # an empty file in the directory of a model that stays, whatever the settings are later


@dataclass(frozen=True)
class Snapshots:
    """Of the last ``average`` validations, of the ``keep_best`` best ones, and every ``keep_every`` updates."""

    folder: str
    config: TrainingConfig

    def keep(self, update: int, histories: Sequence[Sequence[Validation]], save: Callable[[str], None]) -> None:
        """Keep the model of ``update`` with ``save(folder)`` if it is wanted, and remove what no longer is.

        Wanted is what any of the ``histories`` asks for.
        """
        wanted = {number for history in histories for number in (*self.last(history), *self._best(history))}
        if self.is_due(update):
            self.keep_due(update, save)
        elif update in wanted:
            save(self.path(update))
        for name in os.listdir(self._place) if os.path.isdir(self._place) else []:
            folder = os.path.join(self._place, name)
            if name.isdecimal() and int(name) not in wanted and not os.path.exists(os.path.join(folder, _KEPT)):
                shutil.rmtree(folder)

    def is_due(self, update: int) -> bool:
        """Whether the model of ``update`` is kept whatever it is worth."""
        return self.config.keep_every is not None and update % self.config.keep_every == 0

    def keep_due(self, update: int, save: Callable[[str], None]) -> None:
        """Keep the model of an ``update`` that is due, for good."""
        save(self.path(update))
        with open(os.path.join(self.path(update), _KEPT), "wb"):
            pass

    def last(self, history: Sequence[Validation]) -> list[int]:
        """The updates whose models are averaged at the end."""
        return [entry.update for entry in history[-self.config.average :]] if self.config.average > 1 else []

    def path(self, update: int) -> str:
        """The model directory of an update."""
        return os.path.join(self._place, f"{update:09d}")

    def _best(self, history: Sequence[Validation]) -> list[int]:
        usable = [entry for entry in history if entry.better_than(None, self.config.select_by)]
        ranked = sorted(usable, key=lambda entry: (-entry.score(self.config.select_by), entry.update))
        return [entry.update for entry in ranked[: self.config.keep_best]]

    @property
    def _place(self) -> str:
        return os.path.join(self.folder, SNAPSHOTS)
