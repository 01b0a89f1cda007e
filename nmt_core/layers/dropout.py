"""Dropout of units that go together: along one dimension all are dropped, or none."""

from __future__ import annotations

import torch
from torch import Tensor


def drop_along(inputs: Tensor, probability: float, *, dim: int) -> Tensor:
    """Along dimension ``dim`` all units are dropped, or none.

    Along the positions, 1, the same units are dropped at all positions of a sentence (Gal and Ghahramani 2016); along
    the units, -1, whole words (Sennrich et al. 2016b, section 2).
    """
    return inputs * draw_kept(inputs.narrow(dim, 0, 1), probability)


def draw_kept(like: Tensor, probability: float) -> Tensor:
    """What to multiply units with, in the shape of ``like``: 0 or 1 / (1 - p)."""
    return torch.empty_like(like.detach()).bernoulli_(1.0 - probability).div_(1.0 - probability)
