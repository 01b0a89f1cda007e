"""Scorers of pairs in other forms than the one their model reads.

============= ===========================================================================================
``prepared``  words (or subwords) as the model reads them, such as the text that it was trained on
``surface``   words as a Moses system has them; the numbers are for these words
``raw``       running text; the numbers are for the words that the model reads
============= ===========================================================================================
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal, NamedTuple

from nmt_core.base.errors import ConfigError
from nmt_core.base.interfaces import PairScore, PairScorer, SentencePair
from nmt_core.model_directory.ensembles import open_raw_text, shared_preparation, with_field
from nmt_core.model_directory.loaded_model import LoadedModel
from nmt_core.preparation.surface import for_surface_words
from nmt_core.text.copying import CopyScheme
from nmt_core.text.processing import RawText

TextForm = Literal["prepared", "surface", "raw"]
OTHER_FORMS: tuple[TextForm, ...] = ("surface", "raw")


class FormReader(NamedTuple):
    """Reads the texts of a form, and makes the model's numbers those of the form.

    What is read of a text has the words as the model reads them as its ``text``. ``restore`` gives the score of two
    texts of the form, from the score of their prepared texts and what was read of source and target.
    """

    read_source: Callable[[str], Any]
    read_target: Callable[[str], Any]
    restore: Callable[[PairScore, Any, Any], PairScore]


class _Words(NamedTuple):
    """The words of running text."""

    text: str


class FormScorer:
    """A ``PairScorer`` of texts of a form, made of one of what its model reads.

    ``tokenization`` is the fingerprint of what makes words of them, for the signature.
    """

    def __init__(self, scorer: PairScorer, reader: FormReader, *, tokenization: str) -> None:
        self._scorer, self.reader, self._tokenization = scorer, reader, tokenization

    @property
    def signature(self) -> str:
        """The model's own, with what makes the words that it reads."""
        return with_field(self._scorer.signature, f"tok:{self._tokenization}")

    def score(
        self, pairs: Sequence[SentencePair], *, per_word: bool = False, attention: bool = False
    ) -> list[PairScore]:
        """Score every pair."""
        reader = self.reader
        sources = {text: reader.read_source(text) for text in dict.fromkeys(pair.source for pair in pairs)}
        targets = {text: reader.read_target(text) for text in dict.fromkeys(pair.target for pair in pairs)}
        read = [SentencePair(sources[pair.source].text, targets[pair.target].text) for pair in pairs]
        scores = self._scorer.score(read, per_word=per_word, attention=attention)
        return [
            reader.restore(score, sources[pair.source], targets[pair.target])
            for pair, score in zip(pairs, scores, strict=True)
        ]


def scorer_of_form(models: Sequence[LoadedModel], scorer: PairScorer, form: TextForm) -> PairScorer:
    """The scorer for text of a form. Raises ConfigError where members of an ensemble were prepared differently.

    Surface words are what a model without a preparation reads. Models that score no plain pairs are a ConfigError too.
    """
    for loaded in models:
        if loaded.config.copying is CopyScheme.POSALL:
            raise ConfigError(
                f"{loaded.folder}: copying: posall: a pair without its word alignment cannot be scored; "
                "give 'nmt-core score' the --word-alignment of its text, or use a model of scheme posunk"
            )
    if form == "prepared":
        return scorer
    if form == "raw":
        text = open_raw_text(models)
        name = models[0].preparation.fingerprint if models[0].preparation is not None else "moses"
        return FormScorer(scorer, raw_reader(text), tokenization=f"raw-{name}")
    preparation = shared_preparation(models)
    if preparation is None:
        return scorer
    source = preparation.open_surface("source", models[0].source)
    target = preparation.open_surface("target", models[0].target)
    reader = FormReader(source.read, target.read, for_surface_words)
    return FormScorer(scorer, reader, tokenization=preparation.fingerprint)


def raw_reader(text: RawText) -> FormReader:
    """What reads running text, by what tokenises it."""
    return FormReader(
        lambda source: _Words(text.tokenize(source)),
        lambda target: _Words(text.tokenize_target(target)),
        lambda score, source, target: score,
    )
