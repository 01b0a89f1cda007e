"""A recurrent language model of the target (Mikolov et al. 2010): p(target), whatever the source.

It has the interface of a translation model that never looks at its source, so that training, scoring,
search and serving need nothing new; as a feature of n-best lists it is asked with an empty source. Its
unit is that of Cho et al. 2014 or, with ``cell: lstm``, an LSTM.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import torch
from pydantic import Field
from torch import Tensor, nn

from nmt_core.config import Config
from nmt_core.data.batching import Batch, Padded
from nmt_core.data.layout import Layout
from nmt_core.layers.embedding import WordEmbedding
from nmt_core.layers.generator import LinearGenerator, linear_generator
from nmt_core.layers.initialisation import Initialisation
from nmt_core.layers.lstm import LSTMUnit
from nmt_core.layers.recurrent import GatedUnit, GateInputs
from nmt_core.models.interface import Memory, Side, State, Step, TranslationModel


class RNNLMConfig(Config):
    """Sizes; ``tied`` takes the word embeddings as output matrix (Press and Wolf 2017)."""

    type: Literal["rnnlm"] = "rnnlm"
    cell: Literal["gru", "lstm"] = "gru"
    embedding: int = Field(default=620, gt=0)
    hidden: int = Field(default=1000, gt=0)
    output_rank: int | None = Field(default=None, gt=0)
    dropout: float = Field(default=0.0, ge=0.0, lt=1.0)
    embedding_dropout: float = Field(default=0.0, ge=0.0, lt=1.0)
    tied: bool = False
    initialisation: Initialisation = "paper"


@dataclass(frozen=True)
class Nothing(Memory):
    """What is remembered of B sources: that they are B."""

    rows_B: Tensor


@dataclass(frozen=True)
class WordState(State):
    """The hidden state; behind that of an LSTM its memory cells."""

    unit_NU: Tensor


class RNNLM(TranslationModel):
    """See the module's docstring."""

    def __init__(self, config: RNNLMConfig, source_words: int, target_words: int) -> None:
        super().__init__()
        self.config = config
        self.target_embedding = WordEmbedding(target_words, config.embedding)
        self.word_inputs: GateInputs | nn.Linear
        self.unit: GatedUnit | LSTMUnit
        if config.cell == "gru":
            self.word_inputs = GateInputs(config.embedding, config.hidden, bias=True)
            self.unit, self.state_size = GatedUnit(config.hidden), config.hidden
        else:
            self.word_inputs = nn.Linear(config.embedding, 4 * config.hidden)
            self.unit, self.state_size = LSTMUnit(config.hidden), 2 * config.hidden
        tied = self.target_embedding if config.tied else None
        rank = config.embedding if config.tied else config.output_rank
        self.output = linear_generator(config.hidden, target_words, rank=rank, tied=tied)
        self.dropout = nn.Dropout(config.dropout)
        self.embedding_dropout = nn.Dropout(config.embedding_dropout)

    @property
    def generator(self) -> LinearGenerator:
        """The output layer."""
        return self.output

    def embeddings(self) -> Iterator[tuple[Side, WordEmbedding]]:
        """Those of the words it reads."""
        yield "target", self.target_embedding

    def encode(self, source: Padded) -> Nothing:
        """Count the sources."""
        return Nothing(torch.zeros(source.rows, device=self.device))

    def start(self, memory: Memory) -> WordState:
        """A state of zeros."""
        return WordState(self.target_embedding.weight.new_zeros(memory.rows, self.state_size))

    def step(self, previous_N: Tensor, state: State, memory: Memory, layout: Layout | None = None) -> Step:
        """Read the word before (nothing at the beginning), then predict from the new state."""
        assert isinstance(state, WordState)
        unit_NU = self.unit(self.word_inputs(self.target_embedding(previous_N)), state.unit_NU)
        return Step(unit_NU[:, : self.config.hidden], WordState(unit_NU), None)

    def readouts(self, batch: Batch) -> Tensor:
        """As ``step`` for a known target, with the products of all words outside the loop."""
        shifted_BTE = self.embedding_dropout(self.target_embedding.shifted(batch.target.words_BL))
        inputs_T = self.word_inputs(shifted_BTE).unbind(dim=1)
        unit = self.unit.recurrence()
        unit_BU = inputs_T[0].new_zeros(inputs_T[0].shape[0], self.state_size)
        hiddens = []
        for inputs_BG in inputs_T:
            unit_BU = unit(inputs_BG, unit_BU)
            hiddens.append(unit_BU[:, : self.config.hidden])
        readouts_BTL: Tensor = self.dropout(torch.stack(hiddens, dim=1))
        return readouts_BTL
