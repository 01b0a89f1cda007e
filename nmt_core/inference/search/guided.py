"""Which continuations a sentence keeps whose translations a guide allows: the best by log p and the guide's bounds.

The total of a hypothesis is log p of its words and the guide's bound, the score of the best text that begins with them.
Both only fall, so that nothing is lost with a hypothesis whose total is below the score of a translation found. Words
that the model reads as one (``<unk>``) are different words of a guide.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from nmt_core.base.interfaces import Guide
from nmt_core.inference.search.hypothesis import Floats
from nmt_core.text.vocabulary import END_ID

_ROUNDING = 1e-6  # of a total, and of 1


class Prefix(NamedTuple):
    """A hypothesis as its guide knows it: the id written last, and ids of the word that are still to be written."""

    word: int
    reached: Any
    bound: float
    rest: tuple[int, ...] = ()


class GuideInIds(NamedTuple):
    """A guide in ids of the target vocabulary, of which a word may have several.

    Translations with a score below ``min_score`` are not searched for.
    """

    guide: Guide
    ids_of: Callable[[str], Sequence[int]]
    min_score: float = -np.inf

    @property
    def beginning(self) -> Prefix:
        """Before the first word."""
        return Prefix(END_ID, self.guide.beginning, 0.0)

    def follow(self, prefix: Prefix) -> list[Prefix]:
        """All ways on, those to the end with ``END_ID``."""
        if prefix.rest:
            return [prefix._replace(word=prefix.rest[0], rest=prefix.rest[1:])]
        found = []
        for word, reached, bound in self.guide.follow(prefix.reached):
            first, *rest = (END_ID,) if word is None else self.ids_of(word)
            found.append(Prefix(first, reached, bound, tuple(rest)))
        return found


class GuidedSentence(NamedTuple):
    """A sentence with a guide: its index among the sentences, its first row, and its hypotheses, row by row."""

    place: int
    first: int
    guide: GuideInIds
    prefixes: Sequence[Prefix]

    def ways(self) -> list[tuple[int, Prefix]]:
        """(row, what is reached) of all ways on."""
        rows = enumerate(self.prefixes, start=self.first)
        return [(row, after) for row, prefix in rows for after in self.guide.follow(prefix)]


class GuidedChoice(NamedTuple):
    """The continuations kept, best first, and the best total of those that there was no place for."""

    totals: list[float]
    log_probs: list[float]
    rows: list[int]
    prefixes: list[Prefix]
    lost: float


def choose_guided(
    sentence: GuidedSentence,
    ways: Sequence[tuple[int, Prefix]],
    log_probs_M: Floats,
    totals: Sequence[float],
    *,
    places: int,
    threshold: float,
) -> GuidedChoice:
    """The best of the ``ways`` on, of equals the earlier; ``totals`` are the totals of the sentence's rows.

    What is worse than ``threshold`` is left out.
    """
    before = [total - prefix.bound for total, prefix in zip(totals, sentence.prefixes, strict=True)]
    sums = [before[row - sentence.first] + after.bound for row, after in ways]
    totals_M = log_probs_M + np.array(sums)
    useful_M = totals_M >= threshold - _ROUNDING * (1.0 + abs(threshold)) if threshold > -np.inf else totals_M > -np.inf
    order = np.argsort(-totals_M, kind="stable")
    order = order[useful_M[order]]
    kept, beyond = order[:places], order[places : places + 1]
    return GuidedChoice(
        totals_M[kept].tolist(),
        log_probs_M[kept].tolist(),
        [ways[number][0] for number in kept.tolist()],
        [ways[number][1] for number in kept.tolist()],
        float(totals_M[beyond].max(initial=-np.inf)),
    )
