"""The two states of a running search that are kept on the host: its sentences, and its live rows.

Columns stand side by side and are changed for all sentences, or rows, at once.
Shapes: A sentences, N rows, C candidates of a sentence.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, NamedTuple

import numpy as np

from nmt_core.inference.search.allocation import RuledSentence
from nmt_core.inference.search.config import USUAL_ROWS
from nmt_core.inference.search.constraints import Progress, Rules, coverage_term
from nmt_core.inference.search.guided import GuidedSentence, Prefix
from nmt_core.inference.search.history import End, Path
from nmt_core.inference.search.hypothesis import (
    Extra,
    Flags,
    Floats,
    Hypothesis,
    Integers,
    Matrix,
    Objects,
    make_hypothesis,
)
from nmt_core.inference.search.requests import Finished, Key, Request
from nmt_core.text.vocabulary import END_ID

_MARGIN = 1e-4  # of a score: more than rounding may be wrong


class Sentences(NamedTuple):
    """The sentences searched.

    Slots of memory, source positions, rules (the most and the fewest words, no unknown words, exponent and offset of
    the length normalisation), the beam and how many of its places are not finished, the step of the first word,
    the score that a hypothesis must beat to be one of the n best, and the ``SearchedSentence``s.
    """

    slots_A: Integers
    widths_A: Integers
    limits_A: Integers
    least_A: Integers
    forbid_A: Flags
    exponents_A: Floats
    offsets_A: Floats
    beams_A: Integers
    places_A: Integers
    begun_A: Integers
    prune_thresholds_A: Floats
    searched_A: Objects

    @classmethod
    def of(cls, rows: Sequence[Sequence[Any]]) -> Sentences:
        """A table with the given lines."""
        columns = [list(column) for column in zip(*rows, strict=True)] or [[] for _ in cls._fields]
        types: dict[str, type[np.generic]] = {
            "forbid_A": np.bool_,
            "exponents_A": np.float64,
            "offsets_A": np.float64,
            "prune_thresholds_A": np.float64,
            "searched_A": np.object_,
        }
        return Sentences._make(
            np.array(column, dtype=types.get(name, np.int64)) for name, column in zip(cls._fields, columns, strict=True)
        )

    @property
    def tokens(self) -> float:
        """Source positions of all sentences, each counted by the part of its beam that still has places.

        One whose beam is wider than ``USUAL_ROWS`` counts as many times as it is wider: rows of logits take memory.
        """
        return float((self.widths_A * self.places_A / np.minimum(self.beams_A, USUAL_ROWS)).sum())

    def decided(self, live_AC: Flags, totals_AC: Floats) -> Flags:
        """Whether sentences have no live hypothesis, or none that could still come among the n best.

        ``live_AC`` are the hypotheses among the candidates of each, with their totals. Log-probabilities only fall and
        coverage only costs, so that no live hypothesis will have a better score than its present total at the
        greatest length.
        """
        best_A = np.where(live_AC, totals_AC, -np.inf).max(axis=1)
        longest_A = (self.limits_A + 1.0 + self.offsets_A) / (self.offsets_A + 1.0)
        bound_A = best_A / longest_A**self.exponents_A
        decided_A: Flags = ~live_AC.any(axis=1) | (bound_A * (1 - _MARGIN) < self.prune_thresholds_A)
        return decided_A

    def take(self, chosen: Integers | Flags) -> Sentences:
        """Some of the sentences."""
        return Sentences._make(column[chosen] for column in self._columns())

    def join(self, other: Sentences) -> Sentences:
        """These sentences, and behind them the others."""
        return Sentences._make(map(np.concatenate, zip(self._columns(), other._columns(), strict=True)))

    def _columns(self) -> list[Any]:
        return list(self)


class LiveRows(NamedTuple):
    """The live hypotheses: their sentences' slots, where their states are, last words, totals, places in the last step.

    ``progress_N`` is how far they have come with the rules of their sentence, or with its guide; None without these.
    """

    slots_N: Integers
    parents_N: Integers
    previous_N: Integers
    totals_N: Floats
    origins_N: Integers
    progress_N: Objects

    @staticmethod
    def beginning(slots_N: Integers, parents_N: Integers, word: int, progress: Sequence[Any]) -> LiveRows:
        """Hypotheses without words; ``word`` stands for the one before the first."""
        rows = len(slots_N)
        return LiveRows(slots_N, parents_N, np.full(rows, word), np.zeros(rows), np.full(rows, -1), objects(progress))

    def take(self, chosen: Integers | Flags) -> LiveRows:
        """Some of the rows."""
        return LiveRows._make(column[chosen] for column in self._columns())

    def join(self, other: LiveRows) -> LiveRows:
        """These rows, and behind them the others."""
        return LiveRows._make(map(np.concatenate, zip(self._columns(), other._columns(), strict=True)))

    def _columns(self) -> list[Any]:
        return list(self)


def objects(values: Sequence[Any]) -> Objects:
    """A column of any values; NumPy takes tuples apart where it makes an array of them."""
    column = np.empty(len(values), dtype=np.object_)
    for number, value in enumerate(values):
        column[number] = value
    return column


@dataclass
class SearchedSentence(Generic[Key]):
    """What is known of a sentence beside the numbers in its table.

    ``lost`` is the best total that the beam had no place for, with a guide.
    ``attention`` has for every step the first of its rows, and their weights. ``numbers``: no log-probability
    of its last step was NaN.
    """

    request: Request[Key]
    rules: Rules
    lost: float = -np.inf
    ends: list[End] = field(default_factory=list)
    scores: list[float] = field(default_factory=list)
    extras: list[Extra] = field(default_factory=list)
    attention: list[tuple[int, Matrix]] = field(default_factory=list)
    numbers: bool = True

    @staticmethod
    def of(request: Request[Key]) -> SearchedSentence[Key]:
        """A sentence at its beginning."""
        return SearchedSentence(request, request.rules)

    @property
    def beginning(self) -> Progress | Prefix | None:
        """How far a hypothesis without words has come; None without rules and guide."""
        if self.request.guide is not None:
            return self.request.guide.beginning
        return Progress() if self.rules else None

    def attention_of(self, path: Path) -> Matrix | None:
        """The attention weights of one hypothesis at each of its steps."""
        if not self.attention:
            return None
        steps = zip(path.rows, self.attention, strict=False)
        return np.stack([rows_KS[row - first] for row, (first, rows_KS) in steps])

    def best(self, paths: Sequence[Path]) -> Finished[Key]:
        """The best of its finished hypotheses, whose paths are in the order of ``ends``."""
        config = self.request.config
        hypotheses: list[Hypothesis] = [
            make_hypothesis(
                path.words[:-1], path.log_probs, ranking=config.ranking, attention=self.attention_of(path), extra=extra
            )
            for path, extra in zip(paths, self.extras, strict=True)
        ]
        hypotheses.sort(key=lambda hypothesis: -hypothesis.score)  # stable: of equals the earlier comes first
        guided = self.request.guide is not None
        constrained = self.numbers and (bool(self.rules) or guided)
        best = hypotheses[: config.nbest]
        proved = guided and self.lost <= (best[-1].score if len(best) == config.nbest else -np.inf)
        return Finished(self.request.key, best, constrained=constrained, proved=proved)


def table_of(requests: Sequence[Request[Key]], slots: Integers, limits: Sequence[int], *, begun: int) -> Sentences:
    """The numbers of sentences that enter a search, which have these slots and limits of words."""
    lines = []
    for request, slot, limit in zip(requests, slots, limits, strict=True):
        config = request.config
        rules = (limit, config.min_length, config.forbid_unknown, *config.ranking)
        threshold = -np.inf if request.guide is None else request.guide.least
        numbers = (slot, len(request.source) + 1, *rules, config.beam, config.beam, begun, threshold)
        lines.append((*numbers, SearchedSentence.of(request)))
    return Sentences.of(lines)


def asked_of(sentences: Sentences, rows: LiveRows) -> tuple[list[RuledSentence], list[GuidedSentence]]:
    """The sentences with rules, and those with a guide, with the progress of their rows; usually none."""
    ruled: list[RuledSentence] = []
    guided: list[GuidedSentence] = []
    if all(progress is None for progress in rows.progress_N):
        return ruled, guided
    bounds = np.searchsorted(rows.slots_N, [sentences.slots_A, sentences.slots_A + 1]).T.tolist()
    for place, (sentence, (first, last)) in enumerate(zip(sentences.searched_A, bounds, strict=True)):
        progress = rows.progress_N[first:last].tolist()
        if sentence.request.guide is not None:
            guided.append(GuidedSentence(place, first, sentence.request.guide, progress))
        elif sentence.rules:
            ruled.append(RuledSentence(place, first, sentence.rules, progress))
    return ruled, guided


def extra_of(rules: Rules, coverage_penalty: float, progress: Progress) -> Extra:
    """What rules and advice add to the score of a finished hypothesis."""
    coverage = coverage_penalty * coverage_term(progress) if coverage_penalty else 0.0
    log_prob = rules.log_prob(progress) + rules.advised(progress, END_ID)
    return Extra(log_prob, coverage, rules.best(progress).taken)
