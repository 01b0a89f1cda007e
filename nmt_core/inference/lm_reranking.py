"""Translations of a line in a new order: with what an n-gram model of the target says (Montréal's WMT'15 system).

    score = (log p(y | x) + weight * log p_LM(y)) / normalisation of the length

Both are natural logarithms with ``</s>`` counted, as it is in the length. It is the score of search, with one more
model: what else counts there (coverage, the probabilities of constraints) stays. Weight 0 leaves all as it is.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator, Sequence

from nmt_core.inference.search_config import BY_LENGTH, LengthNormalization
from nmt_core.inference.translation import Translation
from nmt_core.ngram import NgramModel
from nmt_core.text.vocabulary import UNKNOWN

_MANY_UNKNOWN = 0.2  # of the words: hardly the same tokenisation
_ENOUGH, _FEW = 1000, 50  # words after which the share is looked at; fewer than the second say nothing


class LanguageModelReranker:
    """Puts the translations of a line in the order of the combined score.

    ``ranking`` should be that of the search.
    """

    def __init__(self, model: NgramModel, *, weight: float, ranking: LengthNormalization = BY_LENGTH) -> None:
        self.model, self.weight, self.ranking = model, weight, ranking

    def __repr__(self) -> str:
        return f"LanguageModelReranker({self.model!r}, weight={self.weight})"

    def rerank(self, found: Sequence[Translation]) -> list[Translation]:
        """Best first, with ``score`` and ``lm_log_prob`` put in; of equals the earlier stays before."""
        scored = [self._scored(translation) for translation in with_lm_log_probs(self.model, found)]
        return sorted(scored, key=lambda translation: -translation.score)

    def _scored(self, translation: Translation) -> Translation:
        score = combined_score(translation, weight=self.weight, ranking=self.ranking)
        return dataclasses.replace(translation, score=score)

    def rerank_stream(
        self, lines: Iterable[Sequence[Translation]], *, keep: int, warn: Callable[[str], None]
    ) -> Iterator[list[Translation]]:
        """The ``keep`` best of every line; ``warn`` is called, once, if the model seems to be of other words."""
        share = LanguageModelCoverage(self.model)
        judged = False
        for found in lines:
            share.count(found[0].words)
            if not judged and share.words >= _ENOUGH:
                judged = True
                _warn_if_needed(share, warn)
            yield self.rerank(found)[:keep]
        if not judged:
            _warn_if_needed(share, warn)


class LanguageModelCoverage:
    """How many of the words seen an n-gram model does not know; ``<unk>`` is not counted among the words."""

    def __init__(self, model: NgramModel) -> None:
        self.model = model
        self.words = self.unknown = 0

    def count(self, words: Iterable[str]) -> None:
        """Take note of a translation."""
        ordinary = [word for word in words if word != UNKNOWN]
        self.words += len(ordinary)
        self.unknown += sum(word not in self.model for word in ordinary)

    @property
    def warning(self) -> str | None:
        """What to tell the user, if anything."""
        return coverage_warning(self.model.path, words=self.words, unknown=self.unknown)


def coverage_warning(path: str, *, words: int, unknown: int) -> str | None:
    """What to tell the user of a language model that does not know so many of the words translated, if anything."""
    if words < _FEW or unknown <= _MANY_UNKNOWN * words:
        return None
    return (
        f"{path}: {unknown} of the first {words} words translated are not in this language "
        "model; was its text tokenised, escaped or cased in another way than that of the translation model?"
    )


def with_lm_log_probs(model: NgramModel, found: Iterable[Translation]) -> list[Translation]:
    """The translations with ``lm_log_prob`` put in; that of a line without words is 0, as its log-probability is."""
    return [
        dataclasses.replace(
            translation, lm_log_prob=model.log_prob(translation.words) if translation.word_log_probs else 0.0
        )
        for translation in found
    ]


def combined_score(translation: Translation, *, weight: float, ranking: LengthNormalization) -> float:
    """See the module's docstring; the translation must have its ``lm_log_prob``."""
    assert translation.lm_log_prob is not None
    if not translation.word_log_probs:
        return 0.0
    added = ranking.normalize(weight * translation.lm_log_prob, length=len(translation.word_log_probs))
    return translation.score + added


def _warn_if_needed(share: LanguageModelCoverage, warn: Callable[[str], None]) -> None:
    if share.warning is not None:
        warn(share.warning)
