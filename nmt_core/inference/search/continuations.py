"""The best continuations of every sentence's hypotheses.

Scores stay on the device of the model; the few continuations that are selected come to the host,
all at once: on a GPU this is the only time in a step that the host waits for it. Sentences with rules or a
guide change what may be selected (``ruled_step``).

A sentence gets the same translation whatever else is in the batch, and low-precision models often give exactly equal
scores. Equal totals are therefore ordered by hypothesis and word, not by the accidents of a partial sort.

Words are taken in blocks. The k best words of a sentence are in the k blocks of largest maximum, so
that one fast pass for the maxima leaves a few hundred words to choose from.

Shapes (see ``nmt_core.layers``): N rows, A sentences, K rows of the sentence that has most, C continuations
of each, V words, G blocks of words, X blocks chosen.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from nmt_core.device import on_device
from nmt_core.inference.search.predictor import BARELY, BLOCK, Prediction
from nmt_core.inference.search.requests import Floats, Integers
from nmt_core.inference.search.ruled_step import RuledStep
from nmt_core.inference.search.state import Continuations, Records
from nmt_core.text.vocabulary import END_ID, UNKNOWN_ID


def select_continuations(prediction: Prediction, sentences_A: Records, rows_N: Records) -> Continuations:
    """The best continuations of every sentence, as many as the most places of any; impossible ones have total -inf.

    ``rows_N`` are ordered as ``sentences_A`` are; the rows of ``prediction`` beyond them are ignored.
    """
    if len(rows_N) < len(prediction.normalizer_N):
        prediction = prediction.first(len(rows_N))
    owners_N = np.searchsorted(sentences_A["slot"], rows_N["slot"])
    has_rules = any(searched.rules is not None for searched in sentences_A["searched"])
    ruled = RuledStep(sentences_A, rows_N) if has_rules else None
    if ruled is not None:
        prediction = ruled.prepare(prediction)
    _restrict(prediction, sentences_A, owners_N)
    if ruled is not None:
        ruled.restrict(prediction)
    selected = _best(prediction, sentences_A, rows_N, owners_N)
    return selected if ruled is None else ruled.select(prediction, selected)


def _restrict(prediction: Prediction, sentences_A: Records, owners_N: Integers) -> None:
    """Make impossible what lengths and unknown words forbid; at its maximum length a sentence is closed."""
    lengths_A = sentences_A["length"]
    short_A, full_A = lengths_A < sentences_A["min_length"], lengths_A >= sentences_A["max_length"]
    forbidden = False
    for which_A, word in ((sentences_A["forbid_unknown"], UNKNOWN_ID), (short_A, END_ID)):
        if which_A.any():
            prediction.scores_NV[prediction.on(np.flatnonzero(which_A[owners_N])), word] = -torch.inf
            forbidden = True
    if forbidden:
        prediction.tops_NG[:, 0] = prediction.scores_NV[:, :BLOCK].amax(dim=1)  # special words come first
    if full_A.any():
        full = prediction.on(np.flatnonzero(full_A[owners_N]))
        ends = torch.full_like(full, END_ID)
        prediction.allow_only(full, ends, prediction.log_probs_at(full, ends))


def _best(prediction: Prediction, sentences_A: Records, rows_N: Records, owners_N: Integers) -> Continuations:
    """The best continuations on the host, ties broken."""
    scores_NV, tops_NG, normalizer_N = prediction[:3]
    counts_A = np.bincount(owners_N, minlength=len(sentences_A))
    starts_A = np.cumsum(counts_A) - counts_A
    columns_K = np.arange(counts_A.max())
    missing_AK = columns_K >= counts_A[:, None]
    rows_AK = np.where(missing_AK, starts_A[:, None], starts_A[:, None] + columns_K)
    totals_N, *own_AK = on_device(scores_NV.device, rows_N["total"], rows_AK, missing_AK)
    offsets_N = totals_N.to(normalizer_N.dtype) - normalizer_N
    best = best_continuations(scores_NV, tops_NG, offsets_N, *own_AK, count=int(sentences_A["places"].max()))
    fetched = _fetch(prediction, best)
    tied = np.flatnonzero(fetched[:, -1]).tolist()
    for place in tied:
        own = range(starts_A[place], starts_A[place] + counts_A[place])
        break_ties(scores_NV, tops_NG, offsets_N, best, sentence=place, rows=own)
    if tied:
        fetched = _fetch(prediction, best)
    totals_AC, log_probs_AC, indices_AC = np.split(fetched[:, :-1], 3, axis=1)
    rows_AC, words_AC = np.divmod(indices_AC.astype(np.int64), scores_NV.shape[1])
    return Continuations(totals_AC, np.where(log_probs_AC < 0.5 * BARELY, -np.inf, log_probs_AC), rows_AC, words_AC)


def _fetch(prediction: Prediction, best: Candidates) -> Floats:
    """Totals, log-probabilities of the words and indices, side by side, and whether there are ties, on the host."""
    scores_NV, _, normalizer_N = prediction[:3]
    log_probs_AC = scores_NV.flatten()[best.indices_AC].double()
    log_probs_AC -= normalizer_N[best.indices_AC // scores_NV.shape[1]]
    parts = (best.totals_AC, log_probs_AC, best.indices_AC, best.tied_A.unsqueeze(1))
    fetched: Floats = torch.cat([part.double() for part in parts], dim=1).cpu().numpy()
    return fetched


class Candidates(NamedTuple):
    """Best first: totals, and ``row * V + word``. ``tied_A``: another one equals the last."""

    totals_AC: Tensor
    indices_AC: Tensor
    tied_A: Tensor


def best_continuations(
    scores_NV: Tensor, tops_NG: Tensor, offsets_N: Tensor, rows_AK: Tensor, missing_AK: Tensor, *, count: int
) -> Candidates:
    """The ``count`` best totals ``scores_NV[row] + offsets_N[row]`` among each sentence's rows.

    ``tops_NG`` are the ``block_maxima`` of the scores.
    ``rows_AK`` are ascending; where ``missing_AK`` they are any. What is not there has total -inf. The
    choice between equal totals at the end of the list may be a wrong one where ``tied_A``; ``break_ties``
    makes it right.

    An example with 300 words, that is 3 blocks of 128, and a sentence whose rows are 4 and 5. Its blocks are numbered
    0 to 2 of row 4, 3 to 5 of row 5. If block 4 is chosen (``chosen_AX``), its row is at place 4 // 3 = 1: row 5. Its
    words are 128 to 255 (``words_AXW``), and their indices 5 * 300 + 128 to 5 * 300 + 255 (``indices_AM``).
    """
    words = scores_NV.shape[1]
    tops_NG = tops_NG.to(offsets_N.dtype) + offsets_N.unsqueeze(1)
    blocks = tops_NG.shape[1]
    tops_AKG = tops_NG.index_select(0, rows_AK.flatten()).view(*rows_AK.shape, blocks)
    tops_AM = tops_AKG.masked_fill_(missing_AK.unsqueeze(2), -torch.inf).flatten(1)
    # One more than wanted, here and below: if it equals the last one, the two are tied.
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
    tied_A = (totals_AC[:, -2] == totals_AC[:, -1]) & (totals_AC[:, -1] > -torch.inf)
    # by total, equal ones by index
    indices_AC, order = indices_AM.gather(1, best_AC[:, :-1]).sort(dim=1)
    totals_AC, again = totals_AC[:, :-1].gather(1, order).sort(dim=1, descending=True, stable=True)
    return Candidates(totals_AC, indices_AC.gather(1, again), tied_A)


def break_ties(
    scores_NV: Tensor, tops_NG: Tensor, offsets_N: Tensor, candidates: Candidates, *, sentence: int, rows: range
) -> None:
    """Take, of the totals equal to a sentence's last, the ones of the smallest indices; changes ``candidates``.

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
    tied_C = indices_XW.flatten()[equal[(columns_C - better).clamp(min=0)]]
    indices_C = candidates.indices_AC[sentence]
    indices_C.copy_(torch.where(columns_C < better, indices_C, tied_C))


def _first(flags_M: Tensor, count: int) -> Tensor:
    """The places of the first ``count`` flags that are set, and behind them, where there are fewer, of others."""
    places_M = torch.arange(len(flags_M), device=flags_M.device)
    late_M = torch.where(flags_M, places_M, places_M + len(flags_M))
    return late_M.topk(min(count, len(late_M)), largest=False).values % len(late_M)
