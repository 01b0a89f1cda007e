"""How sharp the attention is and how it moves.

The attention of Bahdanau et al. 2015, section 3.1, is a soft alignment; here it is read as Moses reads a hard one.

Shapes: T target words and the end, S source words and the end.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

from nmt_core.base.interfaces import PairScore, SentencePair
from smt_bridge.features.pair_score import PairMeasure


def attention_shape(pair: SentencePair, score: PairScore) -> tuple[float, float, float]:
    """Entropy, distortion and backward moves of one pair.

    Entropy is the mean over target words and the end, in nats. A target word stands at the mean source
    position of its attention; distortion is the mean over target words of how far that is from the place
    after the one before (the distortion of Koehn et al. 2003, without the sign), in source words. A move is
    backward where the word most looked at lies left of the one before; given is their fraction.
    """
    rows = score.attention or ()
    entropy = math.fsum(map(_entropy, rows)) / max(len(rows), 1)
    words = rows[:-1]
    if not words:
        return entropy, 0.0, 0.0
    places = [-1.0, *map(_mean_position, words)]
    distortion = math.fsum(abs(here - before - 1.0) for before, here in pairwise(places)) / len(words)
    best = [max(range(len(row)), key=row.__getitem__) for row in words]
    backward = sum(here < before for before, here in pairwise(best)) / len(words)
    return entropy, distortion, backward


def _entropy(row: Sequence[float]) -> float:
    return -math.fsum(weight * math.log(weight) for weight in row if weight > 0.0)


def _mean_position(row: Sequence[float]) -> float:
    return math.fsum(place * weight for place, weight in enumerate(row))


ATTENTION_SHAPE = PairMeasure(
    "attention", ("NMTentropy", "NMTdistortion", "NMTbackward"), attention_shape, attention=True
)
