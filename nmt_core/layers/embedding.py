"""Word vectors, and what else has a row for every word of a vocabulary.

Shapes: N words, E embedding; otherwise as in ``nmt_core.data.batching``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from nmt_core.data.sizes import filled

_WORTH_SORTING = 16  # words


class WordTable(NamedTuple):
    """A parameter with a row (or a number) for every word of the ``source`` or ``target`` vocabulary."""

    parameter: nn.Parameter
    side: Literal["source", "target"]


class WordEmbedding(nn.Embedding):
    """Word vectors; ``NO_WORD`` (any negative id) is the zero vector."""

    weight: nn.Parameter

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

    def apply_once(self, words_N: Tensor, work: Callable[[Tensor], tuple[Tensor, Tensor]]) -> tuple[Tensor, Tensor]:
        """``work`` done on the embeddings (N, E) of ``words_N``; for inference on a CPU, once for equal words."""
        if torch.is_grad_enabled() or words_N.is_cuda or words_N.shape[0] < _WORTH_SORTING:
            return work(self(words_N))
        distinct_U, places_N = words_N.unique(return_inverse=True)
        filling = filled(len(distinct_U), self.weight) - len(distinct_U)
        first_UX, second_UY = work(self(F.pad(distinct_U, (0, filling))))
        return first_UX.index_select(0, places_N), second_UY.index_select(0, places_N)
