"""Whether every source word had attention: what a model with attention leaves untranslated.

Wu et al. 2016 ("Google's Neural Machine Translation System", section 7) add to a hypothesis
sum_i log min(sum_j a_ji, 1) over the source words i, where a_ji is the attention of target word j.
Attention at the source's end is left out: nothing is to be translated there.

Shapes: T target words and the end, S source words and the end.
"""

from __future__ import annotations

import math

from nmt_core.base.interfaces import PairScore, SentencePair
from smt_bridge.features.pair_score import PairMeasure

FLOOR = 1e-4  # of a word's attention: below it, float32 noise would decide the logarithm
_COVERED = 0.5


def coverage(pair: SentencePair, score: PairScore) -> tuple[float, float]:
    """The penalty of Wu et al. (0 is full coverage), and the fraction of source words below half a look."""
    attended = attention_of_words(score)
    if not attended:
        return 0.0, 0.0
    penalty = math.fsum(math.log(min(max(total, FLOOR), 1.0)) for total in attended)
    return penalty, sum(total < _COVERED for total in attended) / len(attended)


def attention_of_words(score: PairScore) -> list[float]:
    """The attention that each source word got from all target words and the end together."""
    return [math.fsum(column) for column in zip(*(score.attention or ()), strict=True)][:-1]


COVERAGE = PairMeasure("coverage", ("NMTcoverage", "NMTuncovered"), coverage, attention=True)
