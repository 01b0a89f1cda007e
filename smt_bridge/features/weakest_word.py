"""The log-probability of the least likely word: one word that does not fit is hidden in a sum."""

from __future__ import annotations

from nmt_core.interfaces import PairScore, SentencePair
from smt_bridge.features.pair_score import PairMeasure


def weakest_word(pair: SentencePair, score: PairScore) -> tuple[float]:
    """The minimum over the words and the end."""
    return (min(score.word_log_probs or (0.0,)),)


WEAKEST_WORD = PairMeasure("nmtmin", ("NMTmin",), weakest_word, per_word=True)
