"""How many words of a hypothesis the model does not know and reads as one and the same ``<unk>``."""

from __future__ import annotations

from nmt_core.interfaces import PairScore, SentencePair
from smt_bridge.features.pair_score import PairMeasure

UNKNOWN_WORDS = PairMeasure("nmtunk", ("NMTunk",), lambda pair, score: (float(score.unknown_target),))


def unknown_in_source(pair: SentencePair, score: PairScore) -> tuple[float]:
    """For a reverse model, which reads the hypothesis as its source."""
    return (float(score.unknown_source),)


UNKNOWN_WORDS_REVERSE = PairMeasure("nmtunk", ("NMTunk",), unknown_in_source)
