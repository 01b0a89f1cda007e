"""What becomes of a neural score beside the plain log-probability: per word, of the weakest word, unknown words."""

from __future__ import annotations

from nmt_core.base.interfaces import PairScore, SentencePair
from smt_bridge.features.pair_score import PairMeasure


def per_word(pair: SentencePair, score: PairScore) -> tuple[float]:
    """Log p by the words of the scored side and its end: what length costs is left to the word count's weight."""
    words = sum(map(bool, pair.target.split(" ")))
    return (score.log_prob / (words + 1),)


LENGTH_NORMALISED = PairMeasure("nmtnorm", ("NMTnorm",), per_word, norm="words")


def weakest_word(pair: SentencePair, score: PairScore) -> tuple[float]:
    """The least likely of the words and the end: one word that does not fit is hidden in a sum."""
    return (min(score.word_log_probs or (0.0,)),)


WEAKEST_WORD = PairMeasure("nmtmin", ("NMTmin",), weakest_word, per_word=True)


UNKNOWN_WORDS = PairMeasure("nmtunk", ("NMTunk",), lambda pair, score: (float(score.unknown_target),))


def unknown_in_source(pair: SentencePair, score: PairScore) -> tuple[float]:
    """For a reverse model, which reads the hypothesis as its source."""
    return (float(score.unknown_source),)


UNKNOWN_WORDS_REVERSE = PairMeasure("nmtunk", ("NMTunk",), unknown_in_source)


CONTINUOUS_SPACE = PairMeasure(
    "cslm", ("CSLM", "CSLMunk"), lambda pair, score: (score.log_prob, float(score.unknown_target))
)
"""A continuous-space model (Cho et al. 2014, section 4.1.2), to which all unknown words are one ``<unk>``.

The paper asked it inside the decoder; on n-best lists it rescores. The number of unknown words, with a weight of its
own, is the paper's word penalty.
"""
