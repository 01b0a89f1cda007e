"""Translations and scores by a Transformer of another program, in the form that our own models give them."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import replace

from nmt_core.base.interfaces import PairScorer, SentencePair
from nmt_core.base.words import split_words
from nmt_core.inference.output.finish import Translation
from nmt_core.inference.scoring.forms import FormScorer, TextForm, raw_reader
from nmt_core.inference.search.config import DecodingConfig
from nmt_core.transformer.model import Transformer


class TransformerTranslator:
    """Translates texts. Of a search's options ``beam``, ``nbest`` and ``forbid_unknown`` count.

    A text without words has the empty translation. Its number is 0 without ``scores``: not all models have it.
    """

    def __init__(self, model: Transformer, *, scores: bool = True) -> None:
        self.model, self._scores = model, scores

    def translate(self, texts: Sequence[str], config: DecodingConfig, *, raw: bool = False) -> list[list[Translation]]:
        """The list of each text, best first. ``raw`` texts are tokenised, and translations detokenised.

        Raises InputError for a text that the model does not take.
        """
        words = [self.model.raw_text.tokenize(text) for text in texts] if raw else texts
        lists = self.model.nbest(words, beam=config.beam, nbest=config.nbest, forbid_unknown=config.forbid_unknown)
        found = [
            [_translation(source, one.text, one.log_prob) for one in listed]
            or [_translation(source, "", self._log_prob_of_nothing)]
            for source, listed in zip(words, lists, strict=True)
        ]
        if not raw:
            return found
        return [[replace(one, text=self.model.raw_text.detokenize(one.text)) for one in nbest] for nbest in found]

    @functools.cached_property
    def _log_prob_of_nothing(self) -> float:
        return self.model.score([SentencePair("", "")])[0].log_prob if self._scores else 0.0


def transformer_scorer(model: Transformer, form: TextForm) -> PairScorer:
    """The scorer for text of a form: such a model reads a Moses system's words as its own."""
    if form != "raw":
        return model
    return FormScorer(model, raw_reader(model.raw_text), tokenization="raw-moses")


def _translation(source: str, text: str, log_prob: float) -> Translation:
    return Translation(text, tuple(split_words(text)), log_prob, log_prob, (), tuple(split_words(source)))
