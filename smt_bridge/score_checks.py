"""Which log-probabilities a score may be, and the least probability that a table has."""

from __future__ import annotations

import math

from nmt_core.base.interfaces import PairScore, SentencePair

FLOOR = 1e-43
"""The least probability in a table. Moses' floor of -100 for logarithms is below it (ln 1e-43 = -99.01)."""
_ROUNDING = 1e-6  # of the log-probability of a word


def score_problem(pair: SentencePair, score: PairScore, *, signature: str) -> str | None:
    """What is wrong with the log-probability of a pair: it is no number, or that of a probability above 1.

    Scores of ``--softmax none``, which the signature names, may be above 0.
    """
    log_prob = score.log_prob
    words = pair.source.count(" ") + pair.target.count(" ") + 3  # of either side, whichever was scored, and an end
    normalised = "softmax:none" not in signature.split("|")
    if math.isfinite(log_prob) and not (normalised and log_prob > _ROUNDING * words):
        return None
    above = ", a probability above 1," if log_prob > 0.0 else ""
    found = f"the scorer gave log-probability {log_prob:g}{above} for `{pair.source} ||| {pair.target}`"
    return f"{found}; the model is damaged or its training diverged"
