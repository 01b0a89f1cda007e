"""The best continuations of every sentence's hypotheses, without sorting them all, ties broken by index.

Search must find the same translation whatever else is in the batch, and low-precision models give
exactly equal scores often. Equal totals are therefore ordered by hypothesis and word, not by the
accidents of a partial sort.

Words are taken in blocks. The k best words of a sentence are in the k blocks of largest maximum, so
that one fast pass for the maxima leaves a few hundred candidates to choose from.

Shapes: N rows of hypotheses, A sentences, K hypotheses of the sentence that has most, V words,
G blocks of words, X blocks chosen, C candidates asked for.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

BLOCK = 128  # words that are first represented by the best of them


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


def block_maxima(scores_NV: Tensor) -> Tensor:
    """The best score of each block of words, (N, G); the last block may be a shorter one."""
    whole = scores_NV.shape[1] // BLOCK * BLOCK
    tops_NG = scores_NV[:, :whole].unflatten(1, (-1, BLOCK)).amax(dim=2) if whole else scores_NV[:, :0]
    if whole == scores_NV.shape[1]:
        return tops_NG
    return torch.cat([tops_NG, scores_NV[:, whole:].amax(dim=1, keepdim=True)], dim=1)


def _ordered(totals_AC: Tensor, indices_AC: Tensor) -> tuple[Tensor, Tensor]:
    """By total, equal ones by index."""
    indices_AC, order = indices_AC.sort(dim=1)
    totals_AC, again = totals_AC.gather(1, order).sort(dim=1, descending=True, stable=True)
    return totals_AC, indices_AC.gather(1, again)
