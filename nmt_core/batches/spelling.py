"""Sentences whose unknown words are spelled: their characters beside the ids.

Spellings stay on the host, where alone their lengths can be looked at without waiting for a GPU. Layers that read
them copy what they need.

Shapes: as in ``nmt_core.layers``; C characters of the longest spelling, M spelled words of a batch.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from nmt_core.batches.padding import ON_HOST, Padded, pad
from nmt_core.device import on_device
from nmt_core.text.characters import END_OF_WORD, Characters, Spelling
from nmt_core.text.sentence import Sentence
from nmt_core.text.vocabulary import UNKNOWN_ID


@dataclass(frozen=True)
class SpelledWords(Padded):
    """``spellings_BLC`` has the characters of unknown words, zeros behind them and at all other positions."""

    spellings_BLC: Tensor = field(metadata=ON_HOST)

    @functools.cached_property
    def spelled_2M(self) -> Tensor:
        """Rows and columns of the positions that have a spelling, sentence after sentence; on the host."""
        return (self.spellings_BLC != END_OF_WORD).any(dim=2).nonzero().T

    @functools.cached_property
    def spellings_MC(self) -> Tensor:
        """The spellings, in the same order; on the host."""
        rows_M, columns_M = self.spelled_2M
        return self.spellings_BLC[rows_M, columns_M]

    def at_spelled(self, *values: Tensor) -> list[Tensor]:
        """The values of tensors at positions that have a spelling: (B, L, ...) -> (M, ...)."""
        rows_M, columns_M = self._spelled_there()
        return [values_BL[rows_M, columns_M] for values_BL in values]

    def with_spelled(self, values_BL: Tensor, values_M: Tensor) -> Tensor:
        """``values_BL`` with others at these positions."""
        rows_M, columns_M = self._spelled_there()
        return values_BL.index_put((rows_M, columns_M), values_M)

    def _spelled_there(self) -> Tensor:
        """``spelled_2M`` where the words are."""
        return on_device(self.words_BL.device, self.spelled_2M)[0]


def pad_spelled(sentences: Sequence[Sentence], characters: Characters) -> SpelledWords:
    """``pad``, with the spellings of those unknown words that have one."""
    padded = pad(sentences)
    found = [
        (row, place, spelling)
        for row, sentence in enumerate(sentences)
        if UNKNOWN_ID in sentence.ids
        for place, spelling in enumerate(spellings_of(sentence, characters))
        if spelling is not None
    ]
    spellings_BLC = torch.zeros(
        *padded.words_BL.shape, max((len(one) for *_, one in found), default=0), dtype=torch.int64
    )
    if found:
        rows, places, spellings = zip(*found, strict=True)
        spellings_BLC[list(rows), list(places)] = padded_spellings(spellings)
    return SpelledWords(padded.words_BL, padded.mask_BL, spellings_BLC)


def spellings_of(sentence: Sentence, characters: Characters) -> list[Spelling | None]:
    """For every word its spelling, None for words that are known or cannot be spelled."""
    return [
        characters.spell(word) if number == UNKNOWN_ID else None
        for number, word in zip(sentence, sentence.words, strict=True)
    ]


def padded_spellings(spellings: Sequence[Spelling]) -> Tensor:
    """One row each, (M, C), with zeros behind the characters."""
    longest = max(map(len, spellings), default=0)
    rows = [(*spelling, *[END_OF_WORD] * (longest - len(spelling))) for spelling in spellings]
    return torch.tensor(rows, dtype=torch.int64).view(len(rows), longest)
