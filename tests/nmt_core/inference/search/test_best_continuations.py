"""The best continuations against a full stable sort."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from nmt_core.inference.search.continuations import Candidates, best_continuations, break_ties
from nmt_core.inference.search.predictor import block_maxima

COUNTS = [3, 1, 12, 5]  # rows of four sentences


def selected(scores_NV: Tensor, offsets_N: Tensor, count: int) -> Candidates:
    """The candidates, ties broken."""
    counts = torch.tensor(COUNTS).unsqueeze(1)
    starts = counts.cumsum(dim=0) - counts
    columns = torch.arange(max(COUNTS))
    missing = columns >= counts
    rows = (starts + columns).masked_fill(missing, 0)
    best = best_continuations(scores_NV, block_maxima(scores_NV), offsets_N, rows, missing, count=count)
    for sentence in best.tied_A.nonzero().squeeze(1).tolist():
        start = int(starts[sentence])
        rows_of = range(start, start + COUNTS[sentence])
        break_ties(scores_NV, block_maxima(scores_NV), offsets_N, best, sentence=sentence, rows=rows_of)
    return best


@pytest.mark.parametrize("words", [1, 5, 130, 1024, 40001])
@pytest.mark.parametrize("levels", [3, 50, 10**9])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_as_a_stable_sort(words: int, levels: int, dtype: torch.dtype) -> None:
    generator = torch.Generator().manual_seed(words + levels)
    rows = sum(COUNTS)
    scores = -torch.randint(0, levels, (rows, words), generator=generator).to(dtype)
    scores[1, : words // 2] = -torch.inf
    offsets = -torch.randint(0, 3, (rows,), generator=generator).float()
    for count in (1, 2, 12):
        best = selected(scores, offsets, count)
        assert best.totals_AC.shape == (len(COUNTS), count)
        start = 0
        for sentence, here in enumerate(COUNTS):
            totals = (scores[start : start + here] + offsets[start : start + here, None]).flatten()
            values, indices = totals.sort(descending=True, stable=True)
            possible = int((values > -torch.inf).sum().clamp(max=count))
            assert torch.equal(best.totals_AC[sentence, :possible], values[:possible])
            assert torch.equal(best.indices_AC[sentence, :possible] - start * words, indices[:possible])
            assert (best.totals_AC[sentence, possible:] == -torch.inf).all()
            start += here


def test_what_is_impossible_is_never_chosen() -> None:
    scores = torch.full((sum(COUNTS), 300), -torch.inf)
    scores[:, 299] = 0.0
    best = selected(scores, torch.zeros(len(scores)), 12)
    assert [(row > -torch.inf).sum().item() for row in best.totals_AC] == COUNTS
