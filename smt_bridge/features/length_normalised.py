"""The neural log-probability per word: what length costs is left to the word count's weight."""

from __future__ import annotations

from nmt_core.interfaces import PairScore, SentencePair
from smt_bridge.features.pair_score import PairMeasure


def per_word(pair: SentencePair, score: PairScore) -> tuple[float]:
    """Divide log p by the words of the scored side and its end."""
    words = sum(map(bool, pair.target.split(" ")))
    return (score.log_prob / (words + 1),)


LENGTH_NORMALISED = PairMeasure("nmtnorm", ("NMTnorm",), per_word, norm="words")
