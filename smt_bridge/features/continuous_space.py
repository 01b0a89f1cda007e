"""A continuous-space language model of the hypothesis (Cho et al. 2014, section 4.1.2), and the words outside its list.

The paper asked it inside the decoder; on n-best lists it rescores. All unknown words are one ``<unk>`` to it, whose
probability is that of all of them; their number, with a weight of its own, is the paper's word penalty.
"""

from __future__ import annotations

from smt_bridge.features.pair_score import PairMeasure

CONTINUOUS_SPACE = PairMeasure(
    "cslm", ("CSLM", "CSLMunk"), lambda pair, score: (score.log_prob, float(score.unknown_target))
)
