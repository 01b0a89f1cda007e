"""Word vectors, and what else has a row for every word of a vocabulary.

Shapes: as in ``nmt_core.layers``; N words.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple, cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from nmt_core.data.sizes import filled
from nmt_core.layers.dropout import WordDropout
from nmt_core.layers.initialisation import FirstValues

_WORTH_SORTING = 16  # words


class WordTable(NamedTuple):
    """A parameter with a row (or a number) for every word of the ``source`` or ``target`` vocabulary."""

    parameter: nn.Parameter
    side: Literal["source", "target"]


class WordEmbedding(nn.Embedding):
    """Word vectors; ``NO_WORD`` (any negative id) is the zero vector.

    In training ``dropout`` drops numbers of the vectors, ``word_dropout`` whole vectors.
    """

    weight: nn.Parameter

    def __init__(self, words: int, size: int, *, dropout: float = 0.0, word_dropout: float = 0.0) -> None:
        super().__init__(words, size)
        self.dropout, self.word_dropout = nn.Dropout(dropout), WordDropout(word_dropout)

    def initialise(self, values: FirstValues) -> None:
        """Normal."""
        values.matrix(self.weight)

    def forward(self, words: Tensor) -> Tensor:
        """(...) -> (..., E)."""
        embedded = super().forward(words.clamp(min=0))
        return embedded * (words >= 0).unsqueeze(-1)

    def known(self, words: Tensor) -> Tensor:
        """The same for ids that are all words."""
        embedded: Tensor = self.word_dropout(self.dropout(super().forward(words)))
        return embedded

    def shifted(self, words_BT: Tensor) -> Tensor:
        """The embedding of the word *before* each position, zero before the first: (B, T) -> (B, T, E)."""
        shifted_BTE = F.pad(super().forward(words_BT[:, :-1]), (0, 0, 1, 0))
        return cast(Tensor, self.word_dropout(self.dropout(shifted_BTE)))

    def apply_once(self, words_N: Tensor, work: Callable[[Tensor], Sequence[Tensor]]) -> Sequence[Tensor]:
        """``work`` done on the embeddings (N, E) of ``words_N``; for inference on a CPU, once for equal words."""
        if torch.is_grad_enabled() or words_N.is_cuda or words_N.shape[0] < _WORTH_SORTING:
            return work(self(words_N))
        distinct_M, places_N = words_N.unique(return_inverse=True)
        filling = filled(len(distinct_M), self.weight) - len(distinct_M)
        return [part_MX.index_select(0, places_N) for part_MX in work(self(F.pad(distinct_M, (0, filling))))]
