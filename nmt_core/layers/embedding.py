"""Word vectors, with factors of the words beside them or without, and what else has a row for every word.

Shapes: as in ``nmt_core.layers``; N words, F factors, M distinct words.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Literal, NamedTuple, cast

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor, nn

from nmt_core.batches.padding import FactoredWords, Padded, bucket_rows
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


class WordEmbedding(Layer):
    """Word vectors, with those of factors of the words or without (Sennrich and Haddow 2016, equation 3).

    ``factors`` has of each the number of words of its vocabulary and the size of its vectors, which stand beside the
    word's. As a table of target words it has the words alone. In training ``dropout`` drops numbers of the vectors.
    """

    def __init__(self, words: int, size: int, factors: Iterable[tuple[int, int]] = (), *, dropout: float = 0.0) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(words, size))
        tables: list[WordEmbedding] = [WordEmbedding(*one) for one in factors]
        self.factors = nn.ModuleList(tables)
        self.size: int = size + sum(table.size for table in tables)  # what an encoder reads of a position
        self.dropped = nn.Dropout(dropout)

    def initialise(self, initialiser: Initialiser) -> None:
        """Normal."""
        initialiser.matrix(self.weight)

    def forward(self, words: Tensor) -> Tensor:
        """(...) -> (..., E)."""
        embedded: Tensor = self.dropped(F.embedding(words, self.weight))
        return embedded

    def of(self, sentences: Padded) -> Tensor:
        """The vectors at all positions of sentences, (B, L, E)."""
        if not self.factors:
            return cast(Tensor, self(sentences.words_BL))
        return self._combined(_with_factors(sentences))

    def distinct(self, sentences: Padded) -> Distinct:
        """The same for sentences on a CPU, so that what is the same need be worked out once.

        Words that differ in a factor are different ones.
        """
        if not self.factors:
            return Distinct(sentences.words_BL.numpy(), self)
        read_MF, numbers = np.unique(_with_factors(sentences).flatten(0, 1).numpy(), axis=0, return_inverse=True)
        distinct_MF = torch.from_numpy(read_MF)
        return Distinct(
            numbers.reshape(sentences.words_BL.shape), lambda numbers_N: self._combined(distinct_MF[numbers_N])
        )

    def shifted(self, words_BT: Tensor) -> Tensor:
        """The vector of the word *before* each position, zero before the first: (B, T) -> (B, T, E)."""
        shifted: Tensor = self.dropped(F.pad(F.embedding(words_BT[:, :-1], self.weight), (0, 0, 1, 0)))
        return shifted

    def apply_once(self, words_N: Tensor, work: Callable[[Tensor], Sequence[Tensor]]) -> Sequence[Tensor]:
        """``work`` done on the vectors (N, E) of ``words_N``, zero for ``NO_WORD``; on a CPU once for equal words.

        For inference.
        """
        words_M, places_N = words_N, None
        if not (words_N.is_cuda or torch.is_grad_enabled() or len(words_N) < _WORTH_SORTING):
            words_M, places_N = words_N.unique(return_inverse=True)
            words_M = F.pad(words_M, (0, bucket_rows(len(words_M), self.weight) - len(words_M)))
        parts = work(F.embedding(words_M.clamp(min=0), self.weight) * (words_M >= 0).unsqueeze(1))
        return parts if places_N is None else [part_MX.index_select(0, places_N) for part_MX in parts]

    def _combined(self, read: Tensor) -> Tensor:
        """(..., 1 + F) ids of words and factors -> (..., E)."""
        words, *columns = read.unbind(dim=-1)
        vectors = [F.embedding(words, self.weight)]
        vectors += [table(column) for table, column in zip(self.factors, columns, strict=True)]
        combined: Tensor = self.dropped(torch.cat(vectors, dim=-1))
        return combined


def _with_factors(sentences: Padded) -> Tensor:
    """The ids of words and of their factors, (B, L, 1 + F)."""
    assert isinstance(sentences, FactoredWords)
    return torch.cat([sentences.words_BL.unsqueeze(2), sentences.factors_BLF], dim=2)
