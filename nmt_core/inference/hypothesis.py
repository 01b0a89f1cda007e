"""What search and sampling return, and how hypotheses are ranked."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from nmt_core.inference.search_config import LengthNormalization

Matrix = npt.NDArray[np.float32] | npt.NDArray[np.float64]


class Placed(NamedTuple):
    """A constraint that is met: its number, the number of the phrase taken, and the phrase's first word and length."""

    constraint: int
    phrase: int
    first: int
    length: int


class Extra(NamedTuple):
    """What a score has beside the log-probability: ``log_prob`` before the normalisation, ``coverage`` after it."""

    log_prob: float = 0.0
    coverage: float = 0.0
    taken: tuple[Placed, ...] = ()


NO_EXTRA = Extra()


@dataclass(frozen=True)
class Hypothesis:
    """A whole target sentence as a model sees it.

    ``words`` are ids without ``</s>``; ``word_log_probs`` (natural logarithms) has one number per
    word and one for ``</s>``, and ``log_prob`` is their sum, log p(y | x). ``score`` is what
    hypotheses of one source are ranked by. ``attention`` has a row per target word and one for
    ``</s>``, a column per source word and one for ``</s>``; None where it was not asked for or the
    model has none. ``taken`` says where the constraints of the search were met.
    """

    words: tuple[int, ...]
    log_prob: float
    score: float
    word_log_probs: tuple[float, ...]
    attention: Matrix | None = field(default=None, compare=False)
    taken: tuple[Placed, ...] = ()


def make_hypothesis(
    words: Sequence[int],
    word_log_probs: Sequence[float],
    *,
    ranking: LengthNormalization,
    attention: Matrix | None = None,
    extra: Extra = NO_EXTRA,
) -> Hypothesis:
    """Sum up the words' log-probabilities and work out the score."""
    log_prob = math.fsum(word_log_probs)
    score = ranking.normalize(log_prob + extra.log_prob, length=len(word_log_probs)) + extra.coverage
    return Hypothesis(tuple(words), log_prob, score, tuple(word_log_probs), attention, extra.taken)
