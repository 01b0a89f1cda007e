"""Scorers of pairs in other forms than the one their model reads.

============= ===========================================================================================
``prepared``  words (or subwords) as the model reads them, such as the text that it was trained on
``surface``   words as a Moses system has them; the numbers are for these words
``raw``       running text; the numbers are for the words that the model reads
============= ===========================================================================================
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal

import torch

from nmt_core.inference.pair_scorer import ModelPairScorer, Softmax
from nmt_core.interfaces import PairScore, PairScorer, SentencePair
from nmt_core.models.checkpoint import LoadedModel, load_model
from nmt_core.models.raw_text import open_raw_text, shared_preparation
from nmt_core.preparation.surface import SurfaceReader, for_surface_words

TextForm = Literal["prepared", "surface", "raw"]
OTHER_FORMS: tuple[TextForm, ...] = ("surface", "raw")


class SurfaceScorer:
    """A ``PairScorer`` of surface words, made of one of what its model reads and of readers of both sides.

    ``preparation`` is the fingerprint of the steps, for the signature.
    """

    def __init__(self, scorer: PairScorer, source: SurfaceReader, target: SurfaceReader, *, preparation: str) -> None:
        self._scorer, self._source, self._target = scorer, source, target
        self._preparation = preparation

    @property
    def signature(self) -> str:
        """The model's own, with the preparation that cuts the words."""
        return _with_tokenization(self._scorer.signature, self._preparation)

    def score(
        self, pairs: Sequence[SentencePair], *, per_word: bool = False, attention: bool = False
    ) -> list[PairScore]:
        """Score every pair; numbers of words and attention are for the words of ``pairs``."""
        sources = {text: self._source.read(text) for text in dict.fromkeys(pair.source for pair in pairs)}
        targets = {text: self._target.read(text) for text in dict.fromkeys(pair.target for pair in pairs)}
        read = [SentencePair(sources[pair.source].text, targets[pair.target].text) for pair in pairs]
        scores = self._scorer.score(read, per_word=per_word, attention=attention)
        return [
            for_surface_words(score, sources[pair.source], targets[pair.target])
            for pair, score in zip(pairs, scores, strict=True)
        ]


class RawScorer:
    """A ``PairScorer`` of running text, made of one of what its model reads."""

    def __init__(
        self, scorer: PairScorer, source: Callable[[str], str], target: Callable[[str], str], *, preparation: str
    ) -> None:
        self._scorer, self._source, self._target = scorer, source, target
        self._preparation = preparation

    @property
    def signature(self) -> str:
        """The model's own, with what makes words of raw text."""
        return _with_tokenization(self._scorer.signature, f"raw-{self._preparation}")

    def score(
        self, pairs: Sequence[SentencePair], *, per_word: bool = False, attention: bool = False
    ) -> list[PairScore]:
        """Score every pair; numbers of words and attention are for the words that the model reads."""
        read = [SentencePair(self._source(pair.source), self._target(pair.target)) for pair in pairs]
        return self._scorer.score(read, per_word=per_word, attention=attention)


def scorer_of_form(models: Sequence[LoadedModel], scorer: ModelPairScorer, form: TextForm) -> PairScorer:
    """The scorer for text of a form. Raises ConfigError where members of an ensemble were prepared differently.

    Surface words are what a model without a preparation reads.
    """
    if form == "prepared":
        return scorer
    if form == "raw":
        text = open_raw_text(models)
        name = models[0].preparation.fingerprint if models[0].preparation is not None else "moses"
        return RawScorer(scorer, text.tokenize, text.tokenize_target, preparation=name)
    preparation = shared_preparation(models)
    if preparation is None:
        return scorer
    source = preparation.open_surface("source", models[0].source)
    target = preparation.open_surface("target", models[0].target)
    return SurfaceScorer(scorer, source, target, preparation=preparation.fingerprint)


def open_scorer_of_form(
    folders: Sequence[str],
    form: TextForm,
    *,
    device: str | torch.device = "cpu",
    dtype: torch.dtype = torch.float32,
    softmax: Softmax = "full",
) -> PairScorer:
    """Load the models of ``folders`` and make their scorer. Raises ModelError or ConfigError."""
    models = [load_model(folder, device=device, dtype=dtype) for folder in folders]
    return scorer_of_form(models, ModelPairScorer(models, softmax=softmax), form)


def _with_tokenization(signature: str, name: str) -> str:
    before, bar, version = signature.rpartition("|version:")
    return f"{before}|tok:{name}{bar}{version}"
