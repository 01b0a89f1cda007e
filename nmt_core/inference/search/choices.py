"""Which continuations a sentence with lexical constraints or with a guide keeps.

With constraints this is dynamic beam allocation (Post and Vilar 2018). The candidates are the best continuations of
the sentence, the best of each hypothesis, and those that start or continue a constraint. Hypotheses that have equally
many words of constraints share a bank; the places of the beam are divided evenly among the banks, what one cannot fill
goes to the others, those with most words first. So hypotheses that meet constraints do not compete with those that do
not. A candidate after which the required constraints no longer fit in the greatest length is dropped.

With a guide they are the best by log p and the guide's bounds.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from nmt_core.inference.search.constraints import Rules
from nmt_core.inference.search.guided import Prefix
from nmt_core.inference.search.requests import Floats
from nmt_core.inference.search.state import Records
from nmt_core.text.vocabulary import END_ID


class OwnRows(NamedTuple):
    """A sentence in one step: its index and its record, its first row, and the records of its rows."""

    place: int
    sentence: np.void
    first: int
    rows_K: Records

    @property
    def rules(self) -> Any:
        """Its ``Rules``, or its ``GuideInIds``; None without."""
        return self.sentence["searched"].rules

    def progress(self) -> Iterator[tuple[int, Any]]:
        """The progress of each row, with the row's number."""
        return enumerate(self.rows_K["progress"], start=self.first)

    def before(self, row: int) -> Any:
        """The progress of a row."""
        return self.rows_K["progress"][row - self.first]


class Continuation(NamedTuple):
    """A hypothesis and the word that continues it: the new total, the word's log-probability, row and word.

    ``after`` is its progress.
    """

    total: float
    log_prob: float
    row: int
    word: int
    after: Any


def choose_constrained(own: OwnRows, log_probs: Mapping[tuple[int, int], float]) -> list[Continuation]:
    """The continuations to keep, best first, of the candidates (row, word)."""
    rules: Rules = own.rules
    places, room = int(own.sentence["places"]), int(own.sentence["max_length"] - own.sentence["length"]) - 1
    totals = own.rows_K["total"].tolist()
    found: list[Continuation] = []
    for (row, word), log_prob in log_probs.items():
        before = own.before(row)
        after = rules.extend(before, word)
        if log_prob > -np.inf and rules.missing(after) <= (0 if word == END_ID else room):
            added = rules.log_prob(after) - rules.log_prob(before)
            found.append(Continuation(totals[row - own.first] + log_prob + added, log_prob, row, word, after))
    found.sort(key=lambda one: (-one.total, one.row, one.word))
    banks = [rules.bank(one.after) for one in found]
    return [found[number] for number in allocate(banks, banks=rules.words + 1, places=places)]


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


def choose_guided(own: OwnRows, ways: Sequence[tuple[int, Prefix]], log_probs_M: Floats) -> list[Continuation]:
    """The best of the ``ways`` on, (row, what is reached), of equals the earlier."""
    before = [row["total"] - row["progress"].bound for row in own.rows_K]
    totals_M = log_probs_M + np.array([before[row - own.first] + after.bound for row, after in ways])
    order = np.argsort(-totals_M, kind="stable")
    kept = []
    for number in order[totals_M[order] > -np.inf][: own.sentence["places"]].tolist():
        row, after = ways[number]
        kept.append(Continuation(float(totals_M[number]), float(log_probs_M[number]), row, after.word, after))
    return kept
