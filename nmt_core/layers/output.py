"""From decoder state to word: the maxout readout and the output matrix.

Shapes: N rows, H hidden units, E embedding, C context, L maxout units, V words.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
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
        pairs = self.state(state) + self.word(embedded) + context_part
        return torch.maximum(pairs[..., 0::2], pairs[..., 1::2])


class OutputLayer(nn.Module):
    """Logits W_o t + b; with ``rank`` the matrix is a product of two (Cho et al. 2014, supplement: G = G_l G_r).

    ``tied`` takes the target word embeddings as the second matrix.
    """

    def __init__(self, units: int, words: int, *, rank: int | None = None, tied: nn.Embedding | None = None) -> None:
        super().__init__()
        self.low_rank = nn.Linear(units, rank, bias=False) if rank else None
        self.weight = tied.weight if tied is not None else nn.Parameter(torch.empty(words, rank or units))
        self.bias = nn.Parameter(torch.empty(words))

    def forward(self, readout_NL: Tensor, candidates_C: Tensor | None = None) -> Tensor:
        """(..., L) -> (..., V), or (..., C) for the candidate words alone."""
        inputs = readout_NL if self.low_rank is None else self.low_rank(readout_NL)
        if candidates_C is None:
            return F.linear(inputs, self.weight, self.bias)
        return F.linear(inputs, self.weight[candidates_C], self.bias[candidates_C])


class WordEmbedding(nn.Embedding):
    """Word vectors; ``NO_WORD`` (any negative id) is the zero vector."""

    def forward(self, words: Tensor) -> Tensor:
        """(...) -> (..., E)."""
        embedded = super().forward(words.clamp(min=0))
        return embedded * (words >= 0).unsqueeze(-1)

    def known(self, words: Tensor) -> Tensor:
        """The same for ids that are all words."""
        return super().forward(words)

    def shifted(self, words_BT: Tensor) -> Tensor:
        """The embedding of the word *before* each position, zero before the first: (B, T) -> (B, T, E)."""
        return F.pad(self.known(words_BT[:, :-1]), (0, 0, 1, 0))
