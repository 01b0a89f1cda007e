"""The encoder of a model that reads unknown source words by their characters.

Shapes: as in ``nmt_core.layers``; C characters of the longest spelling, M distinct spelled words of a batch.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor

from nmt_core.batches.padding import Padded
from nmt_core.batches.spelling import SpelledWords
from nmt_core.batches.transfer import to_device
from nmt_core.layers.embedding import Distinct, WordEmbedding
from nmt_core.layers.reader import RecurrentReader
from nmt_core.layers.recurrent import RecurrentEncoder, WordVectors
from nmt_core.layers.spelling import CharacterReader


class SpellingReader(RecurrentReader):
    """Unknown words that are spelled have the vector that ``characters`` makes of their characters.

    Luong and Manning 2016, section 4.2. It is made once for the words of a batch that are spelled alike.
    """

    def __init__(
        self, embedding: WordEmbedding, characters: CharacterReader, directions: Sequence[RecurrentEncoder]
    ) -> None:
        super().__init__(embedding, directions, reads_end=False)
        self.characters = characters

    @property
    def vectors(self) -> WordVectors:
        """Those of the vocabulary, and of words that are spelled."""
        assert self.embedding is not None
        return _SpelledVectors(self.embedding, self.characters)


class _SpelledVectors:
    """The vectors of a vocabulary, and behind them those of the spelled words of a batch."""

    def __init__(self, embedding: WordEmbedding, characters: CharacterReader) -> None:
        self.embedding, self.characters, self.weight = embedding, characters, embedding.weight

    def of(self, sentences: Padded) -> Tensor:
        """(B, L, E)."""
        if not isinstance(sentences, SpelledWords) or not len(sentences.spellings_MC):
            return self.embedding.of(sentences)
        words_BL, vectors_ME = self._spelled(sentences)
        return self._look_up(words_BL, vectors_ME)

    def distinct(self, sentences: Padded) -> Distinct:
        """Words of the same spelling have one number."""
        if not isinstance(sentences, SpelledWords) or not len(sentences.spellings_MC):
            return self.embedding.distinct(sentences)
        words_BL, vectors_ME = self._spelled(sentences)
        return Distinct(words_BL.numpy(), lambda words: self._look_up(words, vectors_ME))

    def _spelled(self, sentences: SpelledWords) -> tuple[Tensor, Tensor]:
        """The ids of words, those of spelled ones behind the rows of the table, and the vectors of these."""
        spellings_MC, places = sentences.spellings_MC.unique(dim=0, return_inverse=True)  # on the host
        numbers = to_device(sentences.words_BL.device, places + len(self.weight))
        return sentences.with_spelled(sentences.words_BL, *numbers), self.characters(spellings_MC)

    def _look_up(self, words: Tensor, vectors_ME: Tensor) -> Tensor:
        spelled = words - len(self.weight)  # in training with partitions the table is narrow
        ordinary = F.embedding(words.clamp(max=len(self.weight) - 1), self.weight)
        vectors = F.embedding(spelled.clamp(min=0), vectors_ME).to(ordinary.dtype)
        return self.embedding.dropped(torch.where((spelled >= 0).unsqueeze(-1), vectors, ordinary))
