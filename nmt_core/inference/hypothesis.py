"""What search and sampling return, and how hypotheses are ranked."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

Matrix = npt.NDArray[np.float32]


@dataclass(frozen=True)
class Hypothesis:
    """A whole target sentence as a model sees it.

    ``words`` are ids without ``</s>``; ``word_log_probs`` (natural logarithms) has one number per
    word and one for ``</s>``, and ``log_prob`` is their sum, log p(y | x). ``score`` is what
    hypotheses of one source are ranked by. ``attention`` has a row per target word and one for
    ``</s>``, a column per source word and one for ``</s>``; None where it was not asked for or the
    model has none.
    """

    words: tuple[int, ...]
    log_prob: float
    score: float
    word_log_probs: tuple[float, ...]
    attention: Matrix | None = field(default=None, compare=False)


def make_hypothesis(
    words: Sequence[int],
    word_log_probs: Sequence[float],
    *,
    length_normalization: float,
    attention: Matrix | None = None,
) -> Hypothesis:
    """Sum up the words' log-probabilities and work out the score."""
    log_prob = math.fsum(word_log_probs)
    score = normalize_by_length(log_prob, length=len(word_log_probs), exponent=length_normalization)
    return Hypothesis(tuple(words), log_prob, score, tuple(word_log_probs), attention)


def normalize_by_length(log_prob: float, *, length: int, exponent: float) -> float:
    """The score log p / length ** exponent; ``length`` counts ``</s>``. 1 is the Montréal system's, 0 is log p."""
    return log_prob / float(length**exponent)
