"""Translations of a line in a new order: by an n-gram model of the target (Montréal's WMT'15 system).

    score = (log p(y | x) + weight * log p_LM(y)) / normalisation of the length

Both are natural logarithms with ``</s>`` counted. It is the score of search, with one more model: the length is the
number of tokens that search wrote, ``</s>`` among them, and what else counts there (the probabilities of constraints)
stays. Weight 0 leaves all as it is.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable

from nmt_core.inference.output.finish import Translation
from nmt_core.inference.search.config import OutputConfig
from nmt_core.kenlm import NgramModel
from nmt_core.text.unknown_share import UnknownShare
from nmt_core.text.vocabulary import UNKNOWN

_MANY_UNKNOWN = 0.2  # of the words: hardly the same tokenisation


def reranked(
    model: NgramModel, found: Iterable[Translation], *, weight: float, config: OutputConfig
) -> list[Translation]:
    """Best first, with ``score`` and ``lm_log_prob`` put in; of equals the earlier stays before.

    ``config`` should be the one of the search.
    """
    scored = [
        dataclasses.replace(one, score=combined_score(one, weight=weight, config=config))
        for one in with_lm_log_probs(model, found)
    ]
    return sorted(scored, key=lambda translation: -translation.score)


def unknown_share(model: NgramModel, words: Iterable[str]) -> tuple[int, int]:
    """How many words there are, and how many of them the model does not know; ``<unk>`` is not counted among them."""
    ordinary = [word for word in words if word != UNKNOWN]
    return len(ordinary), sum(word not in model for word in ordinary)


class CoverageWarning(UnknownShare):
    """A warning, once, if the model of ``path`` seems to be of other words than those that are translated."""

    def __init__(self, path: str, warn: Callable[[str], None]) -> None:
        super().__init__(path, warn)
        self._many = _MANY_UNKNOWN
        self._problem = (
            "are not in this language model; was its text tokenised, escaped or cased otherwise than the text of the"
            " translation model?"
        )


def with_lm_log_probs(model: NgramModel, found: Iterable[Translation]) -> list[Translation]:
    """The translations with ``lm_log_prob`` put in."""
    return [dataclasses.replace(translation, lm_log_prob=model.log_prob(translation.words)) for translation in found]


def combined_score(translation: Translation, *, weight: float, config: OutputConfig) -> float:
    """See the module's docstring; the translation must be of a search and have its ``lm_log_prob``."""
    assert translation.lm_log_prob is not None and translation.length is not None
    added = config.normalized(weight * translation.lm_log_prob, length=translation.length)
    return translation.score + added
