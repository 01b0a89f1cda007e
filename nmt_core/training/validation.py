"""How good a model is on development sets: nats per word, and BLEU of its translations."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import sacrebleu

from nmt_core.base.interfaces import SentencePair
from nmt_core.inference.output.copies import annotated
from nmt_core.inference.search.config import DecodingConfig
from nmt_core.inference.translator import Translator
from nmt_core.model_directory.loaded_model import LoadedModel
from nmt_core.text.pharaoh import Points
from nmt_core.training.data.corpus import batches_in_order, encode_corpus
from nmt_core.training.losses import NOTHING, negative_log_likelihood


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
            order=loaded.target_order,
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
        return [annotated(copying, pair, links).target for pair, links in zip(pairs, points, strict=True)]

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
