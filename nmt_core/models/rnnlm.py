"""A recurrent language model of the target (Mikolov et al. 2010, with a gated unit): p(target), whatever the source.

It has the interface of a translation model that never looks at its source, so that training, scoring,
search and serving need nothing new; as a feature of n-best lists it is asked with an empty source.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
from pydantic import Field
from torch import Tensor, nn

from nmt_core.config import Config
from nmt_core.data.batching import Batch, Padded
from nmt_core.data.layout import Layout
from nmt_core.layers.initialisation import Initialisation
from nmt_core.layers.output import OutputLayer, WordEmbedding
from nmt_core.layers.recurrent import GatedUnit, GateInputs
from nmt_core.models.interface import Memory, State, Step, TranslationModel


class RNNLMConfig(Config):
    """Sizes; ``tied`` takes the word embeddings as output matrix (Press and Wolf 2017)."""

    type: Literal["rnnlm"] = "rnnlm"
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
    """The hidden state."""

    hidden_NH: Tensor


class RNNLM(TranslationModel):
    """See the module's docstring."""

    def __init__(self, config: RNNLMConfig, source_words: int, target_words: int) -> None:
        super().__init__()
        self.config = config
        self.target_words = target_words
        self.target_embedding = WordEmbedding(target_words, config.embedding)
        self.word_inputs = GateInputs(config.embedding, config.hidden, bias=True)
        self.unit = GatedUnit(config.hidden)
        tied = self.target_embedding if config.tied else None
        rank = config.embedding if config.tied else config.output_rank
        self.output = OutputLayer(config.hidden, target_words, rank=rank, tied=tied)
        self.dropout = nn.Dropout(config.dropout)
        self.embedding_dropout = nn.Dropout(config.embedding_dropout)

    def encode(self, source: Padded) -> Nothing:
        """Count the sources."""
        return Nothing(torch.zeros(source.rows, device=self.device))

    def start(self, memory: Memory) -> WordState:
        """A state of zeros."""
        return WordState(self.output.bias.new_zeros(memory.rows, self.config.hidden))

    def step(self, previous_N: Tensor, state: State, memory: Memory, layout: Layout | None = None) -> Step:
        """Read the word before (nothing at the beginning), then predict from the new state."""
        assert isinstance(state, WordState)
        hidden_NH = self.unit(self.word_inputs(self.target_embedding(previous_N)), state.hidden_NH)
        return Step(hidden_NH, WordState(hidden_NH), None)

    def readouts(self, batch: Batch) -> Tensor:
        """As ``step`` for a known target, with the products of all words outside the loop."""
        shifted_BTE = self.embedding_dropout(self.target_embedding.shifted(batch.target.words_BL))
        inputs_T = self.word_inputs(shifted_BTE).unbind(dim=1)
        unit = self.unit.recurrence()
        hidden_BH = inputs_T[0].new_zeros(inputs_T[0].shape[0], self.config.hidden)
        hiddens = []
        for inputs_B3H in inputs_T:
            hidden_BH = unit(inputs_B3H, hidden_BH)
            hiddens.append(hidden_BH)
        readouts_BTL: Tensor = self.dropout(torch.stack(hiddens, dim=1))
        return readouts_BTL
