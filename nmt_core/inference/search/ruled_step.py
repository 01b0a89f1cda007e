"""What rules and guides change in one step of a search; a search without them does nothing of this.

Prefixes, lexical constraints, repeated n-grams, coverage and n-gram guidance are rules (``constraints``); a guide
allows given translations alone (``guided``). Scores are read before any rule, since what a prefix or a constraint
requires is selected whatever other rules forbid.

Shapes: N rows, A sentences, C continuations of each, V words, M pairs of row and word.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from nmt_core.inference.search.allocation import Bounds, RuledSentence, choose_constrained, merged
from nmt_core.inference.search.constraints import Progress, covered
from nmt_core.inference.search.guided import GuidedChoice, GuidedSentence, GuideInIds, choose_guided
from nmt_core.inference.search.hypothesis import Extra, Flags, Floats, Integers, Matrix
from nmt_core.inference.search.predictor import BARELY, Prediction, block_maxima
from nmt_core.inference.search.state import Continuations, Records


class _Offers(NamedTuple):
    """(row, word) that a prefix, a constraint or a guide asks for, with log-probabilities from before any rule."""

    pairs_M2: Integers
    log_probs_M: Tensor

    @staticmethod
    def of(prediction: Prediction, pairs: Sequence[tuple[int, int]]) -> _Offers:
        """The offers of pairs."""
        pairs_M2 = np.array(pairs, dtype=np.int64).reshape(-1, 2)
        return _Offers(pairs_M2, prediction.log_probs_at(*prediction.on(pairs_M2.T.copy())))


class RuledStep:
    """The sentences with rules and those with a guide, in one step. Methods are called in their order here.

    ``covers``: some rule needs the attention.
    """

    def __init__(self, sentences_A: Records, rows_N: Records) -> None:
        self._sentences_A, self._rows_N = sentences_A, rows_N
        self._ruled: dict[int, RuledSentence] = {}
        self._guided: dict[int, GuidedSentence] = {}
        slots_A = sentences_A["slot"]
        ranges = np.searchsorted(rows_N["slot"], [slots_A, slots_A + 1]).T.tolist()
        for place, (searched, (first, last)) in enumerate(zip(sentences_A["searched"], ranges, strict=True)):
            progress = rows_N["progress"][first:last].tolist()
            if isinstance(searched.rules, GuideInIds):
                self._guided[place] = GuidedSentence(place, first, searched.rules, progress)
            elif searched.rules is not None:
                self._ruled[place] = RuledSentence(place, first, searched.rules, progress)
        self._followed = [one for one in self._ruled.values() if one.rules.guidance is not None]
        self._constrained = [one for one in self._ruled.values() if one.rules.constraints]
        self.covers = any(one.rules.coverage for one in self._ruled.values())
        self._after: dict[int, list[Progress]] = {}
        self._choices: dict[int, GuidedChoice] = {}

    def prepare(self, prediction: Prediction) -> Prediction:
        """Read the scores that rules need; returns the prediction with guidance."""
        if self._followed:
            prediction = _guided_by_ngrams(prediction, self._followed)
        ruled = self._ruled.values()
        self._wanted = _Offers.of(prediction, [pair for one in self._constrained for pair in one.wanted()])
        self._forced = _Offers.of(prediction, [pair for one in ruled for pair in one.forced()])
        if self._guided:
            self._follow_guides(prediction)
        return prediction

    def restrict(self, prediction: Prediction) -> None:
        """Prefixes, repeated n-grams, and ``</s>`` while a constraint is open."""
        blocked = [pair for sentence in self._ruled.values() for pair in sentence.blocked()]
        if blocked:
            rows_M, words_M = prediction.on(np.array(blocked, dtype=np.int64).T.copy())
            prediction.scores_NV[rows_M, words_M] = -torch.inf
            changed = prediction.on(np.unique([row for row, _ in blocked]))
            prediction.tops_NG[changed] = block_maxima(prediction.scores_NV[changed])
        if len(self._forced.pairs_M2):
            rows_M, words_M = prediction.on(self._forced.pairs_M2.T.copy())
            prediction.allow_only(rows_M, words_M, self._forced.log_probs_M)

    def select(self, prediction: Prediction, selected: Continuations) -> None:
        """Replace the continuations of sentences with constraints or a guide by those that these keep."""
        if self._constrained:
            self._select_constrained(prediction, selected)
        for place, choice in self._choices.items():
            words = [prefix.word for prefix in choice.prefixes]
            _put(selected, place, list(zip(choice.totals, choice.log_probs, choice.rows, words, strict=True)))
            searched = self._sentences_A["searched"][place]
            searched.lost = max(searched.lost, choice.lost)
        for one in self._followed:
            _take_off_guidance(selected, one)

    def cover(self, attention_NS: Matrix) -> None:
        """Count the attention that source words had."""
        for one in self._ruled.values():
            if one.rules.coverage:
                width = int(self._sentences_A["width"][one.place]) - 1
                for row, progress in enumerate(one.progress):
                    one.progress[row] = covered(progress, attention_NS[one.first + row, :width])

    def extra(self, place: int, column: int, row: int) -> Extra:
        """What the score of a finished hypothesis has in addition to its log-probability."""
        if place in self._choices:
            end = self._choices[place].prefixes[column]
            return Extra(end.bound, reached=end.reached)
        if place not in self._ruled:
            return Extra()
        sentence = self._ruled[place]
        config = self._sentences_A["searched"][place].request.config
        return sentence.rules.extra(sentence.before(row), config.coverage_penalty)

    def progress_of(self, selected: Continuations, live_AC: Flags) -> list[Any]:
        """The progress of the continuations that live on."""
        return [self._progress(selected, place, column) for place, column in np.argwhere(live_AC).tolist()]

    def _progress(self, selected: Continuations, place: int, column: int) -> Any:
        if place in self._choices:
            return self._choices[place].prefixes[column]
        if place not in self._ruled:
            return None
        sentence = self._ruled[place]
        before = sentence.before(int(selected.rows_AC[place, column]))
        if place in self._after:
            return replace(self._after[place][column], coverage_S=before.coverage_S)
        return sentence.rules.extend(before, int(selected.words_AC[place, column]))

    def _follow_guides(self, prediction: Prediction) -> None:
        """Choose the continuations of the sentences with a guide."""
        ways = [one.ways() for one in self._guided.values()]
        offers = _Offers.of(prediction, [(row, after.word) for part in ways for row, after in part])
        log_probs_M = _impossible(offers.log_probs_M.double().cpu().numpy())
        parts = np.split(log_probs_M, np.cumsum([len(part) for part in ways])[:-1])
        for one, part, own_M in zip(self._guided.values(), ways, parts, strict=True):
            sentence = self._sentences_A[one.place]
            totals = self._rows_N["total"][one.first : one.first + len(one.prefixes)].tolist()
            places, threshold = int(sentence["places"]), float(sentence["threshold"])
            self._choices[one.place] = choose_guided(one, part, own_M, totals, places=places, threshold=threshold)

    def _select_constrained(self, prediction: Prediction, selected: Continuations) -> None:
        """Among the best continuations, the best of each row, and those that constraints want."""
        wanted = self._wanted
        of_rows = np.concatenate([np.arange(one.first, one.first + len(one.progress)) for one in self._constrained])
        there = prediction.on(of_rows)
        best_M, words_M = prediction.scores_NV[there].max(dim=1)
        best_M = best_M.double() - prediction.normalizer_N[there]
        fetched = torch.cat([wanted.log_probs_M.double(), best_M, words_M.double()]).cpu().numpy()
        offered, best, words = np.split(fetched, [len(wanted.pairs_M2), len(wanted.pairs_M2) + len(of_rows)])
        wanted_triples = [
            (*pair, value) for pair, value in zip(wanted.pairs_M2.tolist(), offered.tolist(), strict=True)
        ]
        best_triples = list(zip(of_rows.tolist(), words.astype(np.int64).tolist(), best.tolist(), strict=True))
        for one in self._constrained:
            own = range(one.first, one.first + len(one.progress))
            columns = (selected.rows_AC, selected.words_AC, selected.log_probs_AC, selected.totals_AC)
            listed = zip(*(column_AC[one.place].tolist() for column_AC in columns), strict=True)
            log_probs = merged(
                ((row, word, log_prob) for row, word, log_prob, total in listed if total > -np.inf),
                (triple for triple in best_triples if triple[0] in own),
                (triple for triple in wanted_triples if triple[0] in own),
            )
            sentence = self._sentences_A[one.place]
            bounds = Bounds(*(int(sentence[name]) for name in ("places", "length", "max_length")))
            totals = self._rows_N["total"][own.start : own.stop].tolist()
            kept = choose_constrained(one, log_probs, totals, bounds)
            _put(selected, one.place, [continuation[:4] for continuation in kept])
            self._after[one.place] = [continuation.after for continuation in kept]


def _guided_by_ngrams(prediction: Prediction, followed: Sequence[RuledSentence]) -> Prediction:
    """The scores with what guidance adds; its constant, the same for all words, goes to the normalizers."""
    added = [(row, bonuses) for one in followed for row, bonuses in one.bonuses()]
    rows_M = prediction.on(np.repeat([row for row, _ in added], [len(part.words_M) for _, part in added]))
    words_M = prediction.on(np.concatenate([part.words_M for _, part in added]))
    bonuses_M = prediction.on(np.concatenate([part.bonuses_M for _, part in added]))
    prediction.scores_NV[rows_M, words_M] += bonuses_M.to(prediction.scores_NV.dtype)
    changed = prediction.on(np.array([row for row, _ in added]))
    prediction.tops_NG[changed] = block_maxima(prediction.scores_NV[changed])
    constants_N = np.zeros(len(prediction.normalizer_N))
    for one in followed:
        assert one.rules.guidance is not None
        constants_N[one.first : one.first + len(one.progress)] = one.rules.guidance.constant
    normalizer_N = prediction.normalizer_N
    return prediction._replace(normalizer_N=normalizer_N + prediction.on(constants_N).to(normalizer_N.dtype))


def _take_off_guidance(selected: Continuations, sentence: RuledSentence) -> None:
    """Log-probabilities are the model's own, without guidance, which is part of the totals alone."""
    place = sentence.place
    for column in np.flatnonzero(selected.totals_AC[place] > -np.inf).tolist():
        before = sentence.before(int(selected.rows_AC[place, column]))
        after = sentence.rules.guidance_with(before, int(selected.words_AC[place, column]))
        selected.log_probs_AC[place, column] -= after - before.guidance


def _put(selected: Continuations, place: int, continuations: Sequence[tuple[float, float, int, int]]) -> None:
    selected.totals_AC[place] = -np.inf
    for column, (total, log_prob, row, word) in enumerate(continuations):
        selected.totals_AC[place, column] = total
        selected.log_probs_AC[place, column] = -np.inf if log_prob < 0.5 * BARELY else log_prob
        selected.rows_AC[place, column], selected.words_AC[place, column] = row, word


def _impossible(log_probs: Floats) -> Floats:
    """With -inf again where a word had to be taken that the model holds to be impossible."""
    return np.where(log_probs < 0.5 * BARELY, -np.inf, log_probs)
