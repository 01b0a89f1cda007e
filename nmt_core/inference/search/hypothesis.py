"""What search and sampling return, and how hypotheses are ranked."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from nmt_core.base.interfaces import Aligns
from nmt_core.inference.search.config import LengthNormalization
from nmt_core.text.sentence import TargetOrder

Matrix = npt.NDArray[np.float32] | npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]


class MetConstraint(NamedTuple):
    """A constraint that is met: its index, the index of its phrase, and the first word and the length of the phrase."""

    constraint: int
    phrase: int
    first: int
    length: int


class Ending(NamedTuple):
    """What rules or a guide say of a whole hypothesis: ``log_prob`` is added to its own before the normalisation.

    ``met`` and ``reached`` are the constraints that it has met, and what its guide has reached.
    """

    log_prob: float = 0.0
    met: tuple[MetConstraint, ...] = ()
    reached: Any = None


NO_RULES = Ending()


@dataclass(frozen=True)
class Hypothesis:
    """A whole target sentence as a model sees it.

    ``words`` are ids without ``</s>``; ``word_log_probs`` (natural logarithms) has one number per
    word and one for ``</s>``, and ``log_prob`` is their sum, log p(y | x). ``score`` is what
    hypotheses of one source are ranked by. ``attention`` has a row per target word and one for
    ``</s>``, a column per source word and one for ``</s>``; None where it was not requested or the
    model has none. ``met`` says where the constraints of the search were met, ``reached`` is what its guide reached
    with it. The words of a search are in the order in which the model writes.
    """

    words: tuple[int, ...]
    log_prob: float
    score: float
    word_log_probs: tuple[float, ...]
    attention: Matrix | None = field(default=None, compare=False)
    met: tuple[MetConstraint, ...] = ()
    reached: Any = field(default=None, compare=False)

    def in_text_order(self, order: TargetOrder, aligns: Aligns) -> Hypothesis:
        """The hypothesis of a model that writes in this order, in the order of the text."""
        words = len(self.words)
        rows = order.attention(range(words + 1), aligns)
        return replace(
            self,
            words=tuple(order.words(self.words)),
            word_log_probs=tuple(order.rows(self.word_log_probs)),
            attention=None if self.attention is None else self.attention[rows],
            met=tuple(one._replace(first=order.place(one.first, length=one.length, words=words)) for one in self.met),
        )


def make_hypothesis(
    words: Sequence[int],
    word_log_probs: Sequence[float],
    *,
    ranking: LengthNormalization,
    attention: Matrix | None = None,
    ending: Ending = NO_RULES,
) -> Hypothesis:
    """Sum up the words' log-probabilities and work out the score."""
    log_prob = math.fsum(word_log_probs)
    score = ranking.normalize(log_prob + ending.log_prob, length=len(word_log_probs))
    return Hypothesis(tuple(words), log_prob, score, tuple(word_log_probs), attention, ending.met, ending.reached)


def coverage_term(attention_TS: Matrix) -> float:
    """Σ_i log min(Σ_j a_ji, 1), Wu et al. 2016, equation 14, over the source words without ``</s>``."""
    least = np.finfo(np.float64).tiny
    coverage_S = attention_TS[:, :-1].astype(np.float64).sum(axis=0)
    return float(np.log(np.clip(coverage_S, least, 1.0)).sum())
