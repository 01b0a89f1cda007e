"""Scores of single sentences with sacrebleu."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import sacrebleu


class SentenceScores(NamedTuple):
    """BLEU (smoothed, with effective order), chrF2 and TER of one sentence, in percent; TER is lower when better."""

    bleu: float
    chrf: float
    ter: float


def sentence_scorer(tokenize: str) -> SentenceScorer:
    """A scorer whose BLEU has sacrebleu's tokeniser ``tokenize``."""
    return SentenceScorer(
        sacrebleu.BLEU(tokenize=tokenize, effective_order=True, force=True), sacrebleu.CHRF(), sacrebleu.TER()
    )


class SentenceScorer:
    """Scores hypotheses one by one; equal hypotheses of a sentence are worth keeping apart by the caller."""

    def __init__(self, bleu: Any, chrf: Any, ter: Any) -> None:
        self._metrics = (bleu, chrf, ter)

    def score(self, hypothesis: str, references: Sequence[str]) -> SentenceScores:
        """The three scores against all references of the sentence."""
        return SentenceScores(*(float(m.sentence_score(hypothesis, references).score) for m in self._metrics))
