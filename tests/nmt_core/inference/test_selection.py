"""The best scores against a full stable sort."""

from __future__ import annotations

import pytest
import torch

from nmt_core.inference.selection import top_scores


@pytest.mark.parametrize("many", [1, 5, 130, 5000, 40001])
@pytest.mark.parametrize("levels", [3, 50, 10**9])
def test_as_a_stable_sort(many: int, levels: int) -> None:
    generator = torch.Generator().manual_seed(many + levels)
    scores = -torch.randint(0, levels, (4, many), generator=generator).float()
    scores[1, : many // 2] = -torch.inf
    for k in (1, 2, 12):
        values, indices = top_scores(scores, k)
        expected_values, expected_indices = scores.sort(dim=1, descending=True, stable=True)
        assert torch.equal(values, expected_values[:, :k])
        finite = values > -torch.inf
        assert torch.equal(indices[finite], expected_indices[:, :k][finite])


def test_what_stands_behind_does_not_matter() -> None:
    scores = torch.zeros(1, 3000)
    wider = torch.cat([scores, torch.full((1, 9000), -torch.inf)], dim=1)
    assert torch.equal(top_scores(scores, 12)[1], top_scores(wider, 12)[1])
    assert top_scores(scores, 12)[1].tolist() == [list(range(12))]
