"""Words from and to characters (Luong and Manning 2016, sections 4.1 to 4.3; Luong's thesis, 5.2).

``CharacterReader`` makes the vector of a word of its characters; ``SpellingDecoder`` spells a word, beginning with a
vector that says which.

Spellings are given on the host, which knows their lengths; what is read of them is copied to the device of the layers.

Shapes: as in ``nmt_core.layers``; C characters of the longest spelling, M words, N rows, U the states of all layers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from nmt_core.batches.padding import Padded
from nmt_core.batches.spelling import SpelledWords
from nmt_core.device import on_device
from nmt_core.layers.embedding import Distinct, WordEmbedding
from nmt_core.layers.generator import LinearGenerator
from nmt_core.layers.reader import RecurrentEncoder, RecurrentReader
from nmt_core.layers.recurrent import Layers, Stack, run_all

_TOGETHER = 128  # words of like length, as in the authors' code


class CharacterReader(nn.Module):
    """An LSTM over the characters and the end of a word, from zeros; what its top layer gives out last."""

    def __init__(self, characters: int, size: int, layers: Layers) -> None:
        super().__init__()
        self.embedding = WordEmbedding(characters, size, dropout=layers.dropout)
        self.encoder = RecurrentEncoder(size, size, layers)

    def forward(self, spellings_MC: Tensor) -> Tensor:
        """The vectors of words, (M, E)."""
        read_MC, mask_MC = on_device(self.embedding.weight.device, *_with_end(spellings_MC))
        outputs_MCE: Tensor
        outputs_MCE, _ = self.encoder(self.embedding(read_MC), mask_MC)
        return outputs_MCE[:, -1]


class Known(NamedTuple):
    """What the generator of characters reads for the characters and ends of known words, and these."""

    readouts_NH: Tensor
    characters_N: Tensor
    words_N: Tensor
    """Which word each belongs to."""


class SpellingDecoder(nn.Module):
    """An LSTM that writes the characters and the end of a word.

    The units of its first layer begin with the vector that is given, all else with zeros. It reads the
    beginning of the word, which has a vector of its own, and then the characters written.
    """

    def __init__(self, characters: int, embedding: int, hidden: int, layers: Layers, *, biased: bool) -> None:
        super().__init__()
        self.beginning = characters
        self.embedding = WordEmbedding(characters + 1, embedding, dropout=layers.dropout)
        self.stack = Stack(layers, embedding, hidden)
        self.unit, self.inputs, self.upper = self.stack.unit, self.stack.inputs, self.stack.upper
        self.output = self.generator = LinearGenerator(hidden, characters, biased=biased)  # 0 is the end

    def step(self, previous_N: Tensor, states_NU: Tensor) -> tuple[Tensor, Tensor]:
        """Read the characters written last (negative: none), and give what the generator reads, and the states."""
        read_N = torch.where(previous_N < 0, self.beginning, previous_N)
        states_NU = self.stack.recurrence()(self.inputs(self.embedding(read_N)), states_NU, None)
        return self.stack.top(states_NU), states_NU

    def known(self, starts_MH: Tensor, spellings_MC: Tensor) -> Known:
        """All steps of known spellings, words of like length together."""
        return Known(*map(torch.cat, zip(*self._parts(starts_MH, spellings_MC), strict=True)))

    def log_probs(self, starts_MH: Tensor, spellings_MC: Tensor) -> Tensor:
        """Log p of whole spellings, their ends counted: (M,) in float32 or better.

        Without gradient memory is for some words at a time, and for a number of each.
        """
        found = [(known.words_N, self._log_probs(known)) for known in self._parts(starts_MH, spellings_MC)]
        words_N, found_N = map(torch.cat, zip(*found, strict=True))
        return found_N.new_zeros(len(starts_MH)).index_add(0, words_N, found_N)

    def _log_probs(self, known: Known) -> Tensor:
        """Log p of every character and end, (N,)."""
        if torch.is_grad_enabled():
            log_probs_NV = self.generator.log_probs(known.readouts_NH)
            return log_probs_NV.gather(1, known.characters_N.unsqueeze(1)).squeeze(1)
        rows_N = torch.arange(len(known.characters_N))
        return self.generator.log_prob_at(known.readouts_NH, rows_N, known.characters_N)

    def _parts(self, starts_MH: Tensor, spellings_MC: Tensor) -> Iterator[Known]:
        """Words of like length; where there are no words, one part of none."""
        if not len(spellings_MC):
            yield self._known(starts_MH, spellings_MC, torch.arange(0, device=spellings_MC.device))
        for some_R in _by_length(spellings_MC):
            yield self._known(starts_MH, spellings_MC, some_R)

    def _known(self, starts_MH: Tensor, spellings_MC: Tensor, some_R: Tensor) -> Known:
        """All steps of some words."""
        goals_RC, mask_RC = _with_end(spellings_MC[some_R])
        read_RC = F.pad(goals_RC[:, :-1], (1, 0), value=self.beginning)
        places_2N = mask_RC.nonzero().T
        words_N, characters_N = some_R[places_2N[0]], goals_RC[mask_RC]
        there = on_device(starts_MH.device, some_R, read_RC, places_2N, characters_N, words_N)
        some_R, read_RC, (rows_N, columns_N), characters_N, words_N = there
        inputs_RCG = self.inputs(self.embedding(read_RC))
        first_RU = self.stack.start(starts_MH[some_R]).to(inputs_RCG.dtype)
        top_RCH, _ = self.stack.run(inputs_RCG, first_RU, run_all)
        return Known(top_RCH[rows_N, columns_N], characters_N, words_N)


def _with_end(spellings_MC: Tensor) -> tuple[Tensor, Tensor]:
    """The spellings and the ends of the words, as wide as the longest of them, and which places are no padding."""
    lengths_M = (spellings_MC != 0).sum(dim=1)
    longest = int(lengths_M.max()) if len(lengths_M) else spellings_MC.shape[1]
    places_C = torch.arange(longest + 1, device=spellings_MC.device)
    return F.pad(spellings_MC[:, :longest], (0, 1)), places_C <= lengths_M.unsqueeze(1)


def _by_length(spellings_MC: Tensor) -> Iterator[Tensor]:
    """The places of words of like length."""
    order_M = (spellings_MC != 0).sum(dim=1).argsort(stable=True)
    yield from (some_R for some_R in order_M.split(_TOGETHER) if len(some_R))


class SpellingReader(RecurrentReader):
    """Unknown words that are spelled have the vector that ``characters`` makes of their characters.

    Luong and Manning 2016, section 4.2. It is made once for the words of a batch that are spelled alike.
    """

    def __init__(
        self, embedding: WordEmbedding, characters: CharacterReader, directions: Sequence[RecurrentEncoder]
    ) -> None:
        super().__init__(_SpelledVectors(embedding, characters), directions, reads_end=False)
        self.characters = characters


class _SpelledVectors:
    """The vectors of a vocabulary, and behind them those of the spelled words of a batch."""

    def __init__(self, embedding: WordEmbedding, characters: CharacterReader) -> None:
        self.embedding, self.characters = embedding, characters

    @property
    def weight(self) -> nn.Parameter:
        """Those of the vocabulary alone, (V, E)."""
        return self.embedding.weight

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
        numbers = on_device(sentences.words_BL.device, places + len(self.weight))
        return sentences.with_spelled(sentences.words_BL, *numbers), self.characters(spellings_MC)

    def _look_up(self, words: Tensor, vectors_ME: Tensor) -> Tensor:
        spelled = words - len(self.weight)  # in training with partitions the table is narrow
        ordinary = F.embedding(words.clamp(max=len(self.weight) - 1), self.weight)
        vectors = F.embedding(spelled.clamp(min=0), vectors_ME).to(ordinary.dtype)
        looked_up: Tensor = self.embedding.dropped(torch.where((spelled >= 0).unsqueeze(-1), vectors, ordinary))
        return looked_up
