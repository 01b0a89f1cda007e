"""The pair scorer's numbers for translations that were searched for with coarser ones, or not at all.

Search in bfloat16 chooses among words by logits of 8 bits; the pair scorer has the same products in float32.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import torch

from nmt_core.base.interfaces import PairScore, SentencePair
from nmt_core.inference.scoring.pair_scorer import ModelPairScorer
from nmt_core.inference.search.config import BY_LENGTH, LengthNormalization
from nmt_core.inference.search.hypothesis import Hypothesis
from nmt_core.models.checkpoint import LoadedModel


class Searched(NamedTuple):
    """A source as tokenised text, its hypotheses in the order of the text, and what these are ranked by."""

    source: str
    hypotheses: Sequence[Hypothesis]
    ranking: LengthNormalization


def search_is_coarse(models: Sequence[LoadedModel]) -> bool:
    """Whether the numbers of their search are less exact than those of their pair scorer."""
    return next(models[0].model.parameters()).dtype not in (torch.float32, torch.float64)


def score_again(models: Sequence[LoadedModel], sentences: Sequence[Searched]) -> list[list[Hypothesis]]:
    """The hypotheses of every sentence with the pair scorer's log-probabilities, in the order they came in."""
    target = models[0].target
    pairs = [
        SentencePair(one.source, " ".join(target.decode(hypothesis.words)))
        for one in sentences
        for hypothesis in one.hypotheses
    ]
    scores = iter(ModelPairScorer(models).score_as_read(pairs, per_word=True))
    return [[_with_score(hypothesis, next(scores), one.ranking) for hypothesis in one.hypotheses] for one in sentences]


def empty_translation(models: Sequence[LoadedModel]) -> Hypothesis:
    """The only translation of a source without words, which is not searched for: log p of ``</s>``.

    Its length is 1, so that every normalisation leaves its score as it is.
    """
    return score_again(models, [Searched("", [Hypothesis((), 0.0, 0.0, ())], BY_LENGTH)])[0][0]


def best_first(hypotheses: Sequence[Hypothesis]) -> list[Hypothesis]:
    """By their scores; of equals the earlier stays before."""
    return sorted(hypotheses, key=lambda hypothesis: -hypothesis.score)


def _with_score(hypothesis: Hypothesis, score: PairScore, ranking: LengthNormalization) -> Hypothesis:
    assert score.word_log_probs is not None
    added = ranking.normalize(score.log_prob - hypothesis.log_prob, length=len(score.word_log_probs))
    return replace(
        hypothesis,
        log_prob=score.log_prob,
        word_log_probs=score.word_log_probs,
        score=hypothesis.score + added,
    )
