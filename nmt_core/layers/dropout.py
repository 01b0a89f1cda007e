"""Kinds of dropout that are not ``torch.nn.Dropout``; all do nothing outside of training.

Shapes: B sentences, T positions, E units.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn


class VariationalDropout(nn.Module):
    """The same units dropped at all positions of a sentence (Gal and Ghahramani 2016)."""

    def __init__(self, probability: float) -> None:
        super().__init__()
        self.probability = probability

    def forward(self, inputs_BTE: Tensor) -> Tensor:
        """(B, T, E) -> (B, T, E)."""
        kept_BE = self.kept(inputs_BTE[:, 0])
        return inputs_BTE if kept_BE is None else inputs_BTE * kept_BE.unsqueeze(1)

    def kept(self, like_BE: Tensor) -> Tensor | None:
        """What to multiply the units of every position with: 0 or 1 / (1 - p); None where nothing is dropped."""
        if not (self.training and self.probability):
            return None
        kept_BE = torch.empty_like(like_BE.detach()).bernoulli_(1.0 - self.probability)
        return kept_BE.div_(1.0 - self.probability)


class WordDropout(nn.Module):
    """Whole words dropped: their vector is zero, and the others are larger (Sennrich et al. 2016b, section 2)."""

    def __init__(self, probability: float) -> None:
        super().__init__()
        self.probability = probability

    def forward(self, embedded_BTE: Tensor) -> Tensor:
        """(B, T, E) -> (B, T, E)."""
        if not (self.training and self.probability):
            return embedded_BTE
        kept_BT1 = torch.empty_like(embedded_BTE[..., :1].detach()).bernoulli_(1.0 - self.probability)
        return embedded_BTE * kept_BT1.div_(1.0 - self.probability)
