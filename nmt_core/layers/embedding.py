"""Word vectors, with factors of the words beside them or without, and what else has a row for every word.

Shapes: as in ``nmt_core.layers``; N words, F factors, M distinct words.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple, cast

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor, nn

from nmt_core.batches.padding import FactoredWords, Padded, bucket_rows
from nmt_core.layers.dropout import drop_along
from nmt_core.layers.init import Initialiser, Layer

_WORTH_SORTING = 16  # words


class WordTable(NamedTuple):
    """A parameter with a row (or a number) for every word of the ``source`` or ``target`` vocabulary."""

    parameter: nn.Parameter
    side: Literal["source", "target"]


class Distinct(NamedTuple):
    """A number for every position of sentences, (B, L), equal where the same is read, and the vectors of numbers."""

    numbers_BL: NDArray[np.int64]
    vectors: Callable[[Tensor], Tensor]
    """(N,) -> (N, E)."""


class WordEmbedding(nn.Embedding, Layer):
    """Word vectors. In training ``dropout`` drops numbers of the vectors, ``word_dropout`` whole vectors."""

    weight: nn.Parameter

    def __init__(self, words: int, size: int, *, dropout: float = 0.0, word_dropout: float = 0.0) -> None:
        super().__init__(words, size)
        self.size = size  # the numbers that an encoder reads of a position
        self.dropout, self.word_dropout = dropout, word_dropout

    def reset_parameters(self) -> None:
        """PyTorch's first values, but none without memory for them, for which it would import its compiler."""
        if not self.weight.is_meta:
            super().reset_parameters()

    def initialise(self, initialiser: Initialiser) -> None:
        """Normal."""
        initialiser.matrix(self.weight)

    def forward(self, words: Tensor) -> Tensor:
        """(...) -> (..., E)."""
        return self.dropped(super().forward(words))

    def dropped(self, embedded: Tensor) -> Tensor:
        """Vectors with dropout."""
        embedded = F.dropout(embedded, self.dropout, self.training)
        return drop_along(embedded, self.word_dropout, dim=-1) if self.training and self.word_dropout else embedded

    def of(self, sentences: Padded) -> Tensor:
        """The vectors at all positions of sentences, (B, L, E)."""
        return cast(Tensor, self(sentences.words_BL))

    def distinct(self, sentences: Padded) -> Distinct:
        """The same for sentences on a CPU, so that what is the same need be worked out once."""
        return Distinct(sentences.words_BL.numpy(), self)

    def shifted(self, words_BT: Tensor) -> Tensor:
        """The vector of the word *before* each position, zero before the first: (B, T) -> (B, T, E)."""
        return self.dropped(F.pad(super().forward(words_BT[:, :-1]), (0, 0, 1, 0)))

    def apply_once(self, words_N: Tensor, work: Callable[[Tensor], Sequence[Tensor]]) -> Sequence[Tensor]:
        """``work`` done on the vectors (N, E) of ``words_N``, zero for ``NO_WORD``; on a CPU once for equal words.

        For inference.
        """
        words_M, places_N = words_N, None
        if not (words_N.is_cuda or torch.is_grad_enabled() or len(words_N) < _WORTH_SORTING):
            words_M, places_N = words_N.unique(return_inverse=True)
            words_M = F.pad(words_M, (0, bucket_rows(len(words_M), self.weight) - len(words_M)))
        parts = work(super().forward(words_M.clamp(min=0)) * (words_M >= 0).unsqueeze(1))
        return parts if places_N is None else [part_MX.index_select(0, places_N) for part_MX in parts]


Combination = Literal["concat", "sum"]


class FactoredEmbedding(WordEmbedding):
    """Vectors of source words with factors (Sennrich and Haddow 2016, equation 3).

    The vectors of a word and of each of its factors, which have vocabularies of their own, stand side by side
    (``concat``), or are added up (``sum``). As a table of target words it has the words alone.
    """

    def __init__(
        self,
        words: int,
        size: int,
        factors: Sequence[tuple[int, int]],
        *,
        combine: Combination = "concat",
        dropout: float = 0.0,
        word_dropout: float = 0.0,
    ) -> None:
        """``factors`` has of each the number of words of its vocabulary, and the size of its vectors."""
        super().__init__(words, size, dropout=dropout, word_dropout=word_dropout)
        self.factors = nn.ModuleList(WordEmbedding(*one) for one in factors)
        self.combine = combine
        if combine == "concat":
            self.size += sum(size_of_factor for _, size_of_factor in factors)

    @property
    def tables(self) -> list[WordEmbedding]:
        """The vectors of each factor."""
        return [table for table in self.factors if isinstance(table, WordEmbedding)]

    def of(self, sentences: Padded) -> Tensor:
        """(B, L, E)."""
        assert isinstance(sentences, FactoredWords)
        return self._combined(torch.cat([sentences.words_BL.unsqueeze(2), sentences.factors_BLF], dim=2))

    def distinct(self, sentences: Padded) -> Distinct:
        """Words that differ in a factor are different ones."""
        assert isinstance(sentences, FactoredWords)
        read_BLF = torch.cat([sentences.words_BL.unsqueeze(2), sentences.factors_BLF], dim=2)
        read_MF, numbers = np.unique(read_BLF.flatten(0, 1).numpy(), axis=0, return_inverse=True)
        distinct_MF = torch.from_numpy(read_MF)
        return Distinct(
            numbers.reshape(sentences.words_BL.shape), lambda numbers_N: self._combined(distinct_MF[numbers_N])
        )

    def _combined(self, read: Tensor) -> Tensor:
        """(..., 1 + F) ids of words and factors -> (..., E)."""
        columns = read.unbind(dim=-1)
        vectors = [nn.Embedding.forward(self, columns[0])]
        vectors += [table(column) for table, column in zip(self.factors, columns[1:], strict=True)]
        combined = torch.cat(vectors, dim=-1) if self.combine == "concat" else torch.stack(vectors).sum(dim=0)
        return self.dropped(combined)
