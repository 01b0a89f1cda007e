"""Which continuations a sentence with lexical constraints keeps: dynamic beam allocation (Post and Vilar 2018).

The candidates are the best continuations of the sentence, the best of each hypothesis, and those that start or
continue a constraint. Hypotheses that have equally many words of constraints share a bank; the places of the beam
are divided evenly among the banks, what one cannot fill goes to the others, those with most words first. So
hypotheses that meet constraints do not compete with those that do not.

A candidate after which the required constraints no longer fit in the greatest length is dropped.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from nmt_core.inference.search.constraints import Progress, Rules
from nmt_core.inference.search.ngram_guidance import Added
from nmt_core.text.vocabulary import END_ID


class RuledSentence(NamedTuple):
    """A sentence with rules: its index among the sentences, its first row, and the progress of its hypotheses."""

    place: int
    first: int
    rules: Rules
    progress: list[Progress]

    def before(self, row: int) -> Progress:
        """The progress of one of its rows."""
        return self.progress[row - self.first]

    def forced(self) -> list[tuple[int, int]]:
        """(row, word) of the only continuations that a prefix allows."""
        words = map(self.rules.forced, self.progress)
        return [(row, word) for row, word in enumerate(words, start=self.first) if word is not None]

    def blocked(self) -> list[tuple[int, int]]:
        """(row, word) of all continuations that rules forbid."""
        return [
            (row, word)
            for row, progress in enumerate(self.progress, start=self.first)
            for word in sorted(self.rules.blocked(progress))
        ]

    def bonuses(self) -> list[tuple[int, Added]]:
        """(row, bonuses of words by guidance) of all rows."""
        guidance = self.rules.guidance
        assert guidance is not None
        return [(row, guidance.added(progress.words)) for row, progress in enumerate(self.progress, start=self.first)]

    def wanted(self) -> list[tuple[int, int]]:
        """(row, word) of all continuations that start or continue a constraint."""
        return [
            (row, word)
            for row, progress in enumerate(self.progress, start=self.first)
            if self.rules.forced(progress) is None
            for word in sorted(self.rules.wanted(progress))
        ]


class Continuation(NamedTuple):
    """A hypothesis and the word that continues it: the new total, the word's log-probability, row and word.

    ``after`` is its progress.
    """

    total: float
    log_prob: float
    row: int
    word: int
    after: Progress


class Bounds(NamedTuple):
    """How many continuations are kept, the words that the hypotheses have, and the most they may have."""

    places: int
    length: int
    limit: int


def choose_constrained(
    sentence: RuledSentence, log_probs: Mapping[tuple[int, int], float], totals: Sequence[float], bounds: Bounds
) -> list[Continuation]:
    """The continuations to keep, best first, of the candidates (row, word); ``totals`` are the totals of the rows."""
    found: list[Continuation] = []
    for (row, word), log_prob in log_probs.items():
        before = sentence.before(row)
        after = before if word == END_ID else sentence.rules.extend(before, word)
        if _possible(sentence.rules, after, word, bounds) and log_prob > -np.inf:
            added = sentence.rules.log_prob(after) - sentence.rules.log_prob(before)
            found.append(Continuation(totals[row - sentence.first] + log_prob + added, log_prob, row, word, after))
    found.sort(key=lambda one: (-one.total, one.row, one.word))
    banks = [sentence.rules.bank(one.after) for one in found]
    chosen = allocate(banks, banks=sentence.rules.words + 1, places=bounds.places)
    return [found[number] for number in chosen]


def _possible(rules: Rules, after: Progress, word: int, bounds: Bounds) -> bool:
    missing = rules.missing(after)
    return missing == 0 if word == END_ID else bounds.length + 1 + missing <= bounds.limit


def allocate(bank_of: Sequence[int], *, banks: int, places: int) -> list[int]:
    """Which candidates (best first, with their banks) have a place; ascending."""
    available = np.bincount(np.array(bank_of, dtype=np.int64), minlength=banks)
    wanted = np.full(banks, places // banks)
    wanted[-1] += places % banks
    taken = np.minimum(wanted, available)
    for bank in range(banks - 1, -1, -1):
        taken[bank] += min(places - int(taken.sum()), int(available[bank] - taken[bank]))
    chosen = []
    for number, bank in enumerate(bank_of):
        if taken[bank] > 0:
            taken[bank] -= 1
            chosen.append(number)
    return chosen


def merged(*parts: Iterable[tuple[int, int, float]]) -> dict[tuple[int, int], float]:
    """(row, word, log-probability) of several lists; of equal (row, word) the first with a possible one counts."""
    found: dict[tuple[int, int], float] = {}
    for part in parts:
        for row, word, log_prob in part:
            if found.get((row, word), -np.inf) == -np.inf:
                found[row, word] = log_prob
    return found
