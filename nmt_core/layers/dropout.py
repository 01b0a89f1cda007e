"""Dropout of units that go together, in training: along one dimension all are dropped, or none."""

from __future__ import annotations

import torch
from torch import Tensor, nn


class BlockDropout(nn.Module):
    """Along dimension ``dim`` all units are dropped, or none.

    Along the positions, 1, the same units are dropped at all positions of a sentence (Gal and Ghahramani 2016); along
    the units, -1, whole words (Sennrich et al. 2016b, section 2).
    """

    def __init__(self, probability: float, *, dim: int) -> None:
        super().__init__()
        self.probability, self.dim = probability, dim

    def forward(self, inputs: Tensor) -> Tensor:
        """The same shape."""
        if not (self.training and self.probability):
            return inputs
        return inputs * self._mask(inputs.narrow(self.dim, 0, 1))

    def kept(self, like_BE: Tensor) -> Tensor | None:
        """What to multiply the units of every step with: 0 or 1 / (1 - p); None where nothing is dropped."""
        return self._mask(like_BE) if self.training and self.probability else None

    def _mask(self, like: Tensor) -> Tensor:
        return torch.empty_like(like.detach()).bernoulli_(1.0 - self.probability).div_(1.0 - self.probability)
