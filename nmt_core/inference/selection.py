"""The k best of many scores, without sorting them all, and with ties broken by index.

Search must find the same translation whatever else is in the batch, and low-precision models give
exactly equal scores often. Equal scores are therefore ordered by index, not by the accidents of a
partial sort.
"""

from __future__ import annotations

import torch
from torch import Tensor

_BLOCK = 128  # scores that are first represented by their maximum


def top_scores(scores_AM: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """The ``min(k, M)`` best scores of every row and their indices, (A, k), best first, equal ones by index."""
    k = min(k, scores_AM.shape[1])
    # One more than asked for: if it equals the last one asked for, the choice between them is not settled.
    values, indices = _top(scores_AM, min(k + 1, scores_AM.shape[1]))
    unsettled = (values[:, k - 1] == values[:, -1]) & (values[:, -1] > -torch.inf)
    settled = values.shape[1] == k or not bool(unsettled.any())
    values, indices = _by_score_then_index(values[:, :k], indices[:, :k])
    if not settled:
        for row in unsettled.nonzero().squeeze(1).tolist():
            better = int((values[row] > values[row, -1]).sum())
            equal = (scores_AM[row] == values[row, -1]).nonzero().squeeze(1)
            indices[row, better:] = equal[: k - better]
    return values, indices


def _top(scores_AM: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """``topk``; many scores on a CPU are first thinned out block by block.

    The k best are in the k blocks of largest maximum. Finding maxima is one fast pass, whereas
    ``topk`` on a CPU copies and compares every score.
    """
    rows, many = scores_AM.shape
    if scores_AM.is_cuda or many < 2 * k * _BLOCK:
        values, indices = scores_AM.topk(k, dim=1)
        return values, indices
    whole = many // _BLOCK * _BLOCK
    blocks_AGB = scores_AM[:, :whole].view(rows, -1, _BLOCK)
    best_AG = blocks_AGB.amax(dim=2).topk(k, dim=1).indices
    thinned = blocks_AGB.gather(1, best_AG.unsqueeze(2).expand(-1, -1, _BLOCK)).flatten(1)
    starts = (best_AG * _BLOCK).unsqueeze(2) + torch.arange(_BLOCK)
    rest = torch.arange(whole, many).expand(rows, -1)
    values, places = torch.cat([thinned, scores_AM[:, whole:]], dim=1).topk(k, dim=1)
    return values, torch.cat([starts.flatten(1), rest], dim=1).gather(1, places)


def _by_score_then_index(values_AK: Tensor, indices_AK: Tensor) -> tuple[Tensor, Tensor]:
    indices_AK, order = indices_AK.sort(dim=1)
    values_AK, again = values_AK.gather(1, order).sort(dim=1, descending=True, stable=True)
    return values_AK, indices_AK.gather(1, again)
