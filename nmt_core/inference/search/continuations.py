"""One choice of a running search: which words continue which hypotheses.

Scores stay on the device of the model; the few candidates that are chosen of them come to the host,
all at once: on a GPU this is the only time in a step that it is waited for. Sentences with lexical
constraints or a guide fetch a few more and choose among them on the host.

A sentence gets the same translation whatever else is in the batch, and low-precision models often give exactly equal
scores. Equal totals are therefore ordered by hypothesis and word, not by the accidents of a partial sort.

Words are taken in blocks. The k best words of a sentence are in the k blocks of largest maximum, so
that one fast pass for the maxima leaves a few hundred candidates to choose from.

Shapes (see ``nmt_core.layers``): N rows, A sentences, K rows of the sentence that has most, C candidates
of each, V words, M pairs of row and word, G blocks of words, X blocks chosen.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch
import torch.nn.functional as F
from torch import Tensor

from nmt_core.batches.transfer import on_device
from nmt_core.inference.search.allocation import Bounds, RuledSentence, choose_constrained, merged
from nmt_core.inference.search.constraints import Progress
from nmt_core.inference.search.guided import GuidedChoice, GuidedSentence, choose_guided
from nmt_core.inference.search.hypothesis import Flags, Floats, Integers
from nmt_core.inference.search.predictor import BLOCK, Prediction, block_maxima
from nmt_core.inference.search.state import LiveRows, Sentences
from nmt_core.text.vocabulary import END_ID, UNKNOWN_ID


class Candidates(NamedTuple):
    """Best first: totals, and ``row * V + word``. ``unsettled_A``: another one equals the last."""

    totals_AC: Tensor
    indices_AC: Tensor
    unsettled_A: Tensor


def best_continuations(
    scores_NV: Tensor, tops_NG: Tensor, offsets_N: Tensor, rows_AK: Tensor, missing_AK: Tensor, *, count: int
) -> Candidates:
    """The ``count`` best totals ``scores_NV[row] + offsets_N[row]`` among each sentence's rows.

    ``tops_NG`` are the ``block_maxima`` of the scores.
    ``rows_AK`` are ascending; where ``missing_AK`` they are any. What is not there has total -inf. The
    choice between equal totals at the end of the list may be a wrong one where ``unsettled_A``; ``settle``
    makes it right.
    """
    words = scores_NV.shape[1]
    tops_NG = tops_NG.to(offsets_N.dtype) + offsets_N.unsqueeze(1)
    blocks = tops_NG.shape[1]
    tops_AKG = tops_NG.index_select(0, rows_AK.flatten()).view(*rows_AK.shape, blocks)
    tops_AM = tops_AKG.masked_fill_(missing_AK.unsqueeze(2), -torch.inf).flatten(1)
    # One more than asked for, here and below: if it equals the last one, the choice between them is not settled.
    chosen_AX = tops_AM.topk(min(count + 1, tops_AM.shape[1]), dim=1).indices
    places_AX = chosen_AX // blocks
    rows_AX = rows_AK.gather(1, places_AX)
    words_AXW = (chosen_AX % blocks * BLOCK).unsqueeze(2) + torch.arange(BLOCK, device=scores_NV.device)
    indices_AM = (rows_AX.unsqueeze(2) * words + words_AXW.clamp(max=words - 1)).flatten(1)
    offsets_AX1 = offsets_N[rows_AX].masked_fill(missing_AK.gather(1, places_AX), -torch.inf).unsqueeze(2)
    values_AXW = scores_NV.flatten()[indices_AM].view(words_AXW.shape) + offsets_AX1
    if words % BLOCK:
        values_AXW.masked_fill_(words_AXW >= words, -torch.inf)
    values_AM = values_AXW.flatten(1)
    if values_AM.shape[1] <= count:
        values_AM = F.pad(values_AM, (0, count + 1 - values_AM.shape[1]), value=-torch.inf)
        indices_AM = F.pad(indices_AM, (0, count + 1 - indices_AM.shape[1]))
    totals_AC, best_AC = values_AM.topk(count + 1, dim=1)
    unsettled_A = (totals_AC[:, -2] == totals_AC[:, -1]) & (totals_AC[:, -1] > -torch.inf)
    return Candidates(*_ordered(totals_AC[:, :-1], indices_AM.gather(1, best_AC[:, :-1])), unsettled_A)


def settle(
    scores_NV: Tensor, tops_NG: Tensor, offsets_N: Tensor, candidates: Candidates, *, sentence: int, rows: range
) -> None:
    """Take, of totals equal to a sentence's last, those of the smallest indices; changes ``candidates``.

    Each of the first blocks that reach the last total has a better word or an equal one, so that no more than ``C`` of
    them have to be looked at. That number, not how many there are, sizes all tensors: a GPU is not waited for.
    """
    totals_C, words, part = candidates.totals_AC[sentence], scores_NV.shape[1], slice(rows.start, rows.stop)
    last, columns_C = totals_C[-1], torch.arange(len(totals_C), device=scores_NV.device)
    offsets_K1 = offsets_N[part].unsqueeze(1)
    tops_KG = tops_NG[part].to(offsets_N.dtype) + offsets_K1
    blocks_X = _first((tops_KG >= last).flatten(), len(totals_C))
    rows_X1 = (blocks_X // tops_KG.shape[1]).unsqueeze(1)
    words_XW = (blocks_X % tops_KG.shape[1] * BLOCK).unsqueeze(1) + torch.arange(BLOCK, device=scores_NV.device)
    totals_XW = scores_NV[part][rows_X1, words_XW.clamp(max=words - 1)] + offsets_K1[rows_X1.squeeze(1)]
    indices_XW = (rows_X1 + rows.start) * words + words_XW
    equal = _first(((totals_XW == last) & (words_XW < words)).flatten(), len(totals_C))
    better = (totals_C > last).sum()
    settled_C = indices_XW.flatten()[equal[(columns_C - better).clamp(min=0)]]
    indices_C = candidates.indices_AC[sentence]
    indices_C.copy_(torch.where(columns_C < better, indices_C, settled_C))


def _first(flags_M: Tensor, count: int) -> Tensor:
    """The places of the first ``count`` flags that are set, and behind them, where there are fewer, of others."""
    places_M = torch.arange(len(flags_M), device=flags_M.device)
    late_M = torch.where(flags_M, places_M, places_M + len(flags_M))
    return late_M.topk(min(count, len(late_M)), largest=False).values % len(late_M)


def _ordered(totals_AC: Tensor, indices_AC: Tensor) -> tuple[Tensor, Tensor]:
    """By total, equal ones by index."""
    indices_AC, order = indices_AC.sort(dim=1)
    totals_AC, again = totals_AC.gather(1, order).sort(dim=1, descending=True, stable=True)
    return totals_AC, indices_AC.gather(1, again)


_BARELY = -1e30  # instead of -inf for a word that has to be taken whatever its probability


class Chosen(NamedTuple):
    """The candidates of every sentence, best first: totals, log-probabilities of the words, rows and words.

    ``guided`` has the choice of the sentences with a guide by their place, ``after`` how far the candidates of those
    with constraints have come.
    """

    totals_AC: Floats
    log_probs_AC: Floats
    rows_AC: Integers
    words_AC: Integers
    guided: dict[int, GuidedChoice]
    after: dict[int, list[Progress]]

    def kept(self, places_A: Integers) -> Flags:
        """Those that are possible and for which there is a place."""
        kept_AC: Flags = (np.arange(self.totals_AC.shape[1]) < places_A[:, None]) & (self.totals_AC > -np.inf)
        return kept_AC


class _Scores(NamedTuple):
    """Scores of the rows, the best of each block of words, and the normalizers; rules write into the first two."""

    scores_NV: Tensor
    tops_NG: Tensor
    normalizer_N: Tensor

    def on(self, values: npt.NDArray[np.generic]) -> Tensor:
        """Numbers of the host where the scores are."""
        return on_device(self.scores_NV.device, values)[0]

    def log_probs(self, rows_M: Tensor, words_M: Tensor) -> Tensor:
        """Log-probabilities, at least ``_BARELY``, of words at rows."""
        scores_M = self.scores_NV[rows_M, words_M].to(self.normalizer_N.dtype)
        return (scores_M - self.normalizer_N[rows_M]).clamp(min=_BARELY)

    def allow_only(self, rows_M: Tensor, words_M: Tensor, log_probs_M: Tensor) -> None:
        """One word for each of some rows, whatever it costs."""
        scores_M = (log_probs_M + self.normalizer_N[rows_M]).to(self.scores_NV.dtype)
        self.scores_NV[rows_M], self.tops_NG[rows_M] = -torch.inf, -torch.inf
        self.scores_NV[rows_M, words_M] = self.tops_NG[rows_M, words_M // BLOCK] = scores_M


class _Offers(NamedTuple):
    """(row, word) that a prefix or a constraint asks for, with log-probabilities from before any rule."""

    pairs_M2: Integers
    log_probs_M: Tensor


def choose(
    advance: Prediction,
    sentences: Sentences,
    rows: LiveRows,
    *,
    time: int,
    ruled: Sequence[RuledSentence] = (),
    guided: Sequence[GuidedSentence] = (),
) -> Chosen:
    """The best continuations that rules and guides allow, as many for every sentence as the most places of any.

    ``rows`` are ordered as ``sentences`` are; the rows of ``advance`` beyond them are not looked at.
    """
    count = len(rows.slots_N)
    scores = _Scores(*(part[:count] for part in advance[:3]))
    owners_N = np.searchsorted(sentences.slots_A, rows.slots_N)
    advised = [one for one in ruled if one.rules.advice is not None]
    if advised:
        scores = _with_advice(scores, advised)
    constrained = [one for one in ruled if one.rules.constraints]
    offers = _offers(scores, [pair for one in constrained for pair in one.wanted()]) if constrained else None
    forced = _offers(scores, [pair for one in ruled for pair in one.forced()]) if ruled else None
    choices = _guided_choices(scores, guided, sentences, rows) if guided else {}
    _restrict(scores, sentences, owners_N, time)
    if forced is not None:
        _apply_rules(scores, ruled, forced)
    chosen = _best(scores, sentences, rows, owners_N)
    if offers is not None:
        _choose_constrained(chosen, scores, constrained, offers, (sentences, rows, time))
    for place, choice in choices.items():
        words = [prefix.word for prefix in choice.prefixes]
        _put(chosen, place, list(zip(choice.totals, choice.log_probs, choice.rows, words, strict=True)))
        chosen.guided[place] = choice
    for one in advised:
        _take_off_advice(chosen, one)
    return chosen


def _best(scores: _Scores, sentences: Sentences, rows: LiveRows, owners_N: Integers) -> Chosen:
    scores_NV, tops_NG, normalizer_N = scores
    counts_A = np.bincount(owners_N, minlength=len(sentences.slots_A))
    starts_A = np.cumsum(counts_A) - counts_A
    columns_K = np.arange(counts_A.max())
    missing_AK = columns_K >= counts_A[:, None]
    rows_AK = np.where(missing_AK, starts_A[:, None], starts_A[:, None] + columns_K)
    totals_N, *own_AK = on_device(scores_NV.device, rows.totals_N, rows_AK, missing_AK)
    offsets_N = totals_N.to(normalizer_N.dtype) - normalizer_N
    best = best_continuations(scores_NV, tops_NG, offsets_N, *own_AK, count=int(sentences.places_A.max()))

    def fetch() -> Floats:
        log_probs_AC = scores_NV.flatten()[best.indices_AC].double()
        log_probs_AC -= normalizer_N[best.indices_AC // scores_NV.shape[1]]
        parts = (best.totals_AC, log_probs_AC, best.indices_AC, best.unsettled_A.unsqueeze(1))
        fetched: Floats = torch.cat([part.double() for part in parts], dim=1).cpu().numpy()
        return fetched

    fetched = fetch()
    unsettled = np.flatnonzero(fetched[:, -1]).tolist()
    for sentence in unsettled:
        start = int(starts_A[sentence])
        there = range(start, start + int(counts_A[sentence]))
        settle(scores_NV, tops_NG, offsets_N, best, sentence=sentence, rows=there)
    totals_AC, log_probs_AC, indices_AC = np.split((fetch() if unsettled else fetched)[:, :-1], 3, axis=1)
    rows_AC, words_AC = np.divmod(indices_AC.astype(np.int64), scores_NV.shape[1])
    return Chosen(totals_AC, _impossible(log_probs_AC), rows_AC, words_AC, {}, {})


def _impossible(log_probs: Floats) -> Floats:
    """With -inf again where a word had to be taken that the model holds to be impossible."""
    return np.where(log_probs < 0.5 * _BARELY, -np.inf, log_probs)


def _restrict(scores: _Scores, sentences: Sentences, owners_N: Integers, time: int) -> None:
    """Make impossible what lengths and unknown words forbid; at its greatest length a sentence is closed."""
    lengths_A = time - sentences.begun_A
    short_A, full_A = lengths_A < sentences.least_A, lengths_A >= sentences.limits_A
    for which_A, word in ((sentences.forbid_A, UNKNOWN_ID), (short_A, END_ID)):
        if which_A.any():
            scores.scores_NV[scores.on(np.flatnonzero(which_A[owners_N])), word] = -torch.inf
    if sentences.forbid_A.any() or short_A.any():
        scores.tops_NG[:, 0] = scores.scores_NV[:, :BLOCK].amax(dim=1)  # special words come first
    if full_A.any():
        full = scores.on(np.flatnonzero(full_A[owners_N]))
        ends = torch.full_like(full, END_ID)
        scores.allow_only(full, ends, scores.log_probs(full, ends))


def _apply_rules(scores: _Scores, ruled: Sequence[RuledSentence], forced: _Offers) -> None:
    """Prefixes, repeated n-grams, and ``</s>`` while a constraint is open."""
    blocked = [pair for sentence in ruled for pair in sentence.blocked()]
    if blocked:
        rows_M, words_M = scores.on(np.array(blocked, dtype=np.int64).T.copy())
        scores.scores_NV[rows_M, words_M] = -torch.inf
        changed = scores.on(np.unique([row for row, _ in blocked]))
        scores.tops_NG[changed] = block_maxima(scores.scores_NV[changed])
    if len(forced.pairs_M2):
        rows_M, words_M = scores.on(forced.pairs_M2.T.copy())
        scores.allow_only(rows_M, words_M, forced.log_probs_M)


def _offers(scores: _Scores, pairs: Sequence[tuple[int, int]]) -> _Offers:
    pairs_M2 = np.array(pairs, dtype=np.int64).reshape(-1, 2)
    return _Offers(pairs_M2, scores.log_probs(*scores.on(pairs_M2.T.copy())))


def _with_advice(scores: _Scores, advised: Sequence[RuledSentence]) -> _Scores:
    """The scores with what advice adds; its constant, which is the same for all words, goes to the normalizers."""
    added = [(row, part) for one in advised for row, part in one.advised()]
    rows_M = scores.on(np.repeat([row for row, _ in added], [len(part.words_M) for _, part in added]))
    words_M = scores.on(np.concatenate([part.words_M for _, part in added]))
    bonuses_M = scores.on(np.concatenate([part.bonuses_M for _, part in added]))
    scores.scores_NV[rows_M, words_M] += bonuses_M.to(scores.scores_NV.dtype)
    changed = scores.on(np.array([row for row, _ in added]))
    scores.tops_NG[changed] = block_maxima(scores.scores_NV[changed])
    constants_N = np.zeros(len(scores.normalizer_N))
    for one in advised:
        constants_N[one.first : one.first + len(one.progress)] = one.rules.advice_constant
    return scores._replace(normalizer_N=scores.normalizer_N + scores.on(constants_N).to(scores.normalizer_N.dtype))


def _take_off_advice(chosen: Chosen, sentence: RuledSentence) -> None:
    """Log-probabilities are the model's own, without advice, which is part of the totals alone."""
    place = sentence.place
    for column in np.flatnonzero(chosen.totals_AC[place] > -np.inf).tolist():
        progress = sentence.progress[int(chosen.rows_AC[place, column]) - sentence.first]
        after = sentence.rules.advised(progress, int(chosen.words_AC[place, column]))
        chosen.log_probs_AC[place, column] -= after - progress.advised


def _guided_choices(
    scores: _Scores, guided: Sequence[GuidedSentence], sentences: Sentences, rows: LiveRows
) -> dict[int, GuidedChoice]:
    """What the sentences with a guide keep, by their places."""
    ways = [one.ways() for one in guided]
    offers = _offers(scores, [(row, after.word) for part in ways for row, after in part])
    log_probs_M = _impossible(offers.log_probs_M.double().cpu().numpy())
    choices, end = {}, 0
    for one, part in zip(guided, ways, strict=True):
        begin, end = end, end + len(part)
        choices[one.place] = choose_guided(
            one,
            part,
            log_probs_M[begin:end],
            rows.totals_N[one.first : one.first + len(one.prefixes)].tolist(),
            places=int(sentences.places_A[one.place]),
            threshold=float(sentences.prune_thresholds_A[one.place]),
        )
    return choices


def _choose_constrained(
    chosen: Chosen,
    scores: _Scores,
    constrained: Sequence[RuledSentence],
    offers: _Offers,
    tables: tuple[Sentences, LiveRows, int],
) -> None:
    """Put the choice of the sentences with constraints in the place of their best continuations."""
    sentences, rows, time = tables
    of_rows = np.concatenate([np.arange(one.first, one.first + len(one.progress)) for one in constrained])
    best_M, words_M = scores.scores_NV[scores.on(of_rows)].max(dim=1)
    best_M = best_M.double() - scores.normalizer_N[scores.on(of_rows)]
    fetched = torch.cat([offers.log_probs_M.double(), best_M, words_M.double()]).cpu().numpy()
    offered, best, words = np.split(fetched, [len(offers.pairs_M2), len(offers.pairs_M2) + len(of_rows)])
    offered_triples = [(*pair, value) for pair, value in zip(offers.pairs_M2.tolist(), offered.tolist(), strict=True)]
    best_triples = list(zip(of_rows.tolist(), words.astype(np.int64).tolist(), best.tolist(), strict=True))
    for sentence in constrained:
        place, own = sentence.place, range(sentence.first, sentence.first + len(sentence.progress))
        listed = zip(
            *(part[place].tolist() for part in (chosen.rows_AC, chosen.words_AC, chosen.log_probs_AC)), strict=True
        )
        bounds = Bounds(
            int(sentences.places_A[place]), time - int(sentences.begun_A[place]), int(sentences.limits_A[place])
        )
        totals_C = chosen.totals_AC[place]
        log_probs = merged(
            (one for one, total in zip(listed, totals_C.tolist(), strict=True) if total > -np.inf),
            (one for one in best_triples if one[0] in own),
            (one for one in offered_triples if one[0] in own),
        )
        kept = choose_constrained(sentence, log_probs, rows.totals_N[own.start : own.stop].tolist(), bounds)
        _put(chosen, place, [one[:4] for one in kept])
        chosen.after[place] = [one.after for one in kept]


def _put(chosen: Chosen, place: int, continuations: Sequence[tuple[float, float, int, int]]) -> None:
    chosen.totals_AC[place] = -np.inf
    for column, (total, log_prob, row, word) in enumerate(continuations):
        chosen.totals_AC[place, column] = total
        chosen.log_probs_AC[place, column] = -np.inf if log_prob < 0.5 * _BARELY else log_prob
        chosen.rows_AC[place, column], chosen.words_AC[place, column] = row, word
