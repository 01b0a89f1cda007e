"""From decoder state, word before and context to what the generator reads."""

from __future__ import annotations

import torch
from torch import Tensor, nn


class MaxoutReadout(nn.Module):
    """t = max over pairs of (U_o s + V_o E y + C_o c + b_o), Bahdanau et al. 2015, appendix A.2.2."""

    def __init__(self, hidden: int, embedding: int, context: int, units: int) -> None:
        super().__init__()
        self.state = nn.Linear(hidden, 2 * units)
        self.word = nn.Linear(embedding, 2 * units, bias=False)
        self.context = nn.Linear(context, 2 * units, bias=False)

    def forward(self, state: Tensor, embedded: Tensor, context_part: Tensor) -> Tensor:
        """(..., H), (..., E) and C_o c (..., 2L) -> (..., L); unit k is the larger of entries 2k and 2k + 1."""
        return self.join(state, self.word(embedded), context_part)

    def join(self, state: Tensor, word_part: Tensor, context_part: Tensor) -> Tensor:
        """The same from V_o E y (..., 2L)."""
        pairs = self.state(state) + word_part + context_part
        return torch.maximum(pairs[..., 0::2], pairs[..., 1::2])
