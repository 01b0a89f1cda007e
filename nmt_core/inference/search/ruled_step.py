"""What rules and guides change in one step of a search; a search without them does nothing of this.

Lexical constraints and n-gram guidance are rules (``constraints``); a guide allows given translations alone
(``guided``). Scores are read before any rule, since what a constraint requires is selected whatever else is forbidden.

Shapes: N rows, A sentences, C continuations of each, V words, M pairs of row and word.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from nmt_core.inference.search.choices import (
    Continuation,
    OwnRows,
    choose_constrained,
    choose_guided,
)
from nmt_core.inference.search.guided import GuideInIds
from nmt_core.inference.search.predictor import BARELY, Prediction, block_maxima
from nmt_core.inference.search.requests import Integers
from nmt_core.inference.search.state import Continuations, Records, row_ranges
from nmt_core.text.vocabulary import END_ID


class _Offers(NamedTuple):
    """(row, word) that a constraint or a guide asks for, with log-probabilities from before any rule."""

    pairs_M2: Integers
    log_probs_M: Tensor

    @staticmethod
    def of(prediction: Prediction, pairs: Sequence[tuple[int, int]]) -> _Offers:
        """The offers of pairs."""
        pairs_M2 = np.array(pairs, dtype=np.int64).reshape(-1, 2)
        return _Offers(pairs_M2, prediction.log_probs_at(*prediction.on(pairs_M2.T.copy())))


class RuledStep:
    """The sentences with rules and those with a guide, in one step. Methods are called in their order here."""

    def __init__(self, sentences_A: Records, rows_N: Records) -> None:
        ranges = row_ranges(sentences_A, rows_N).tolist()
        every = [
            OwnRows(place, sentence, first, rows_N[first:last])
            for place, (sentence, (first, last)) in enumerate(zip(sentences_A, ranges, strict=True))
            if sentence["searched"].rules is not None
        ]
        self._guided = [own for own in every if isinstance(own.rules, GuideInIds)]
        self._ruled = [own for own in every if not isinstance(own.rules, GuideInIds)]
        self._followed = [own for own in self._ruled if own.rules.guidance is not None]
        self._constrained = [own for own in self._ruled if own.rules.constraints]

    def prepare(self, prediction: Prediction) -> Prediction:
        """Read the scores that rules need; returns the prediction with guidance."""
        if self._followed:
            prediction = _guided_by_ngrams(prediction, self._followed)
        wanted = [
            (row, word)
            for own in self._constrained
            for row, progress in own.progress()
            for word in sorted(own.rules.wanted(progress))
        ]
        self._wanted = _Offers.of(prediction, wanted)
        self._choices = self._follow_guides(prediction) if self._guided else []
        return prediction

    def restrict(self, prediction: Prediction) -> None:
        """No ``</s>`` while a required constraint is open."""
        blocked = [row for own in self._constrained for row, progress in own.progress() if own.rules.missing(progress)]
        if blocked:
            rows_M = prediction.on(np.array(blocked, dtype=np.int64))
            prediction.scores_NV[rows_M, END_ID] = -torch.inf
            prediction.tops_NG[rows_M] = block_maxima(prediction.scores_NV[rows_M])

    def select(self, prediction: Prediction, selected: Continuations) -> Continuations:
        """The continuations with their progress; constraints and guides replace those of their sentences."""
        after_AC = np.full(selected.words_AC.shape, None, dtype=np.object_)
        selected = selected._replace(after_AC=after_AC)
        if self._constrained:
            self._select_constrained(prediction, selected)
        for own, kept in zip(self._guided, self._choices, strict=True):
            _put(selected, own.place, kept)
        for own in self._ruled:
            totals_C = selected.totals_AC[own.place, : own.sentence["places"]]
            for column in np.flatnonzero(totals_C > -np.inf).tolist():
                _complete(selected, own, column)
        return selected

    def _follow_guides(self, prediction: Prediction) -> list[list[Continuation]]:
        """The continuations of the sentences with a guide."""
        ways = [
            [(row, after) for row, prefix in own.progress() for after in own.rules.follow(prefix)]
            for own in self._guided
        ]
        offers = _Offers.of(prediction, [(row, after.word) for part in ways for row, after in part])
        log_probs_M = offers.log_probs_M.double().cpu().numpy()
        # impossible again where a word had to be taken that the model holds to be so
        log_probs_M = np.where(log_probs_M < 0.5 * BARELY, -np.inf, log_probs_M)
        parts = np.split(log_probs_M, np.cumsum([len(part) for part in ways])[:-1])
        return [choose_guided(own, part, own_M) for own, part, own_M in zip(self._guided, ways, parts, strict=True)]

    def _select_constrained(self, prediction: Prediction, selected: Continuations) -> None:
        """Among the best continuations, the best of each row, and those that constraints want."""
        of_rows = np.concatenate([np.arange(len(own.rows_K)) + own.first for own in self._constrained])
        there = prediction.on(of_rows)
        best_R, words_R = prediction.scores_NV[there].max(dim=1)
        best_R = best_R.double() - prediction.normalizer_N[there]
        parts = (best_R, words_R, self._wanted.log_probs_M)
        fetched = torch.cat([part.double() for part in parts]).cpu().numpy()
        best, words, wanted = np.split(fetched, [len(of_rows), 2 * len(of_rows)])
        rows_M = np.concatenate([of_rows, self._wanted.pairs_M2[:, 0]])
        words_M = np.concatenate([words.astype(np.int64), self._wanted.pairs_M2[:, 1]])
        offers = list(zip(rows_M.tolist(), words_M.tolist(), [*best.tolist(), *wanted.tolist()], strict=True))
        for own in self._constrained:
            columns = (selected.rows_AC, selected.words_AC, selected.log_probs_AC, selected.totals_AC)
            places = int(own.sentence["places"])  # behind them is what sentences with more places need
            listed = zip(*(column_AC[own.place, :places].tolist() for column_AC in columns), strict=True)
            candidates = [(row, word, log_prob) for row, word, log_prob, total in listed if total > -np.inf]
            candidates += [offer for offer in offers if own.first <= offer[0] < own.first + len(own.rows_K)]
            log_probs: dict[tuple[int, int], float] = {}
            for row, word, log_prob in candidates:  # of equal ones the first that is possible counts
                if log_probs.get((row, word), -np.inf) == -np.inf:
                    log_probs[row, word] = log_prob
            _put(selected, own.place, choose_constrained(own, log_probs))


def _guided_by_ngrams(prediction: Prediction, followed: Sequence[OwnRows]) -> Prediction:
    """The scores with what guidance adds; its constant, the same for all words, goes to the normalizers."""
    added = [
        (row, own.rules.guidance.added(progress.words), own.rules.guidance.constant)
        for own in followed
        for row, progress in own.progress()
    ]
    rows = [row for row, _, _ in added]
    rows_M = prediction.on(np.repeat(rows, [len(part.words_M) for _, part, _ in added]))
    words_M = prediction.on(np.concatenate([part.words_M for _, part, _ in added]))
    bonuses_M = prediction.on(np.concatenate([part.bonuses_M for _, part, _ in added]))
    prediction.scores_NV[rows_M, words_M] += bonuses_M.to(prediction.scores_NV.dtype)
    changed = prediction.on(np.array(rows))
    prediction.tops_NG[changed] = block_maxima(prediction.scores_NV[changed])
    constants_N = np.zeros(len(prediction.normalizer_N))
    constants_N[rows] = [constant for _, _, constant in added]
    normalizer_N = prediction.normalizer_N
    return prediction._replace(normalizer_N=normalizer_N + prediction.on(constants_N).to(normalizer_N.dtype))


def _put(selected: Continuations, place: int, kept: Sequence[Continuation]) -> None:
    """Let a sentence have these continuations alone."""
    assert selected.after_AC is not None
    selected.totals_AC[place] = -np.inf
    for column, (total, log_prob, row, word, after) in enumerate(kept):
        selected.totals_AC[place, column] = total
        selected.log_probs_AC[place, column] = -np.inf if log_prob < 0.5 * BARELY else log_prob
        selected.rows_AC[place, column], selected.words_AC[place, column] = row, word
        selected.after_AC[place, column] = after


def _complete(selected: Continuations, own: OwnRows, column: int) -> None:
    """Give a continuation its progress, and the model's own log-probability: guidance is part of the total alone."""
    assert selected.after_AC is not None
    before = own.before(int(selected.rows_AC[own.place, column]))
    after = selected.after_AC[own.place, column]
    if after is None:
        after = own.rules.extend(before, int(selected.words_AC[own.place, column]))
        selected.after_AC[own.place, column] = after
    if own.rules.guidance is not None:
        selected.log_probs_AC[own.place, column] -= after.guidance - before.guidance
