"""RNNsearch: attention over the annotations of a bidirectional encoder (Bahdanau et al. 2015).

``order`` says in which order a step works:

- ``look-generate-update`` (the authors' code; Jean et al. 2015b, Table 1): c_i from s_{i-1}; the word
  y_i from (s_{i-1}, y_{i-1}, c_i); then s_i from (s_{i-1}, y_i, c_i). Here ``step`` is given y_{i-1},
  so it first finishes the update that was waiting for it, then looks and generates.
- ``conditional`` (Bahdanau et al., main text, equation 4): c_i from s_{i-1}; s_i from
  (s_{i-1}, y_{i-1}, c_i); y_i from (s_i, y_{i-1}, c_i).

Shapes: see ``nmt_core.data.batching`` and ``nmt_core.layers``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
from pydantic import Field
from torch import Tensor, nn

from nmt_core.config import Config
from nmt_core.data.batching import Batch, Padded
from nmt_core.layers.attention import AdditiveAttention, Look
from nmt_core.layers.initialisation import Initialisation
from nmt_core.layers.output import MaxoutReadout, OutputLayer, WordEmbedding
from nmt_core.layers.recurrent import GatedUnit, GateInputs, RecurrentEncoder
from nmt_core.layers.shared_product import SharedMatrix
from nmt_core.models.interface import NO_WORD, Memory, State, Step, TranslationModel


class RNNsearchConfig(Config):
    """Sizes of the paper (appendix A.2.3) unless told otherwise."""

    type: Literal["rnnsearch"] = "rnnsearch"
    embedding: int = Field(default=620, gt=0)
    hidden: int = Field(default=1000, gt=0)
    alignment: int = Field(default=1000, gt=0)
    maxout: int = Field(default=500, gt=0)
    output_rank: int | None = Field(default=None, gt=0)
    order: Literal["look-generate-update", "conditional"] = "look-generate-update"
    dropout: float = Field(default=0.0, ge=0.0, lt=1.0)
    embedding_dropout: float = Field(default=0.0, ge=0.0, lt=1.0)
    tied: bool = False
    initialisation: Initialisation = "paper"


@dataclass(frozen=True)
class Annotations(Memory):
    """h_j for every source position, and U_a h_j."""

    annotations_BSC: Tensor
    keys_BSA: Tensor
    mask_BS: Tensor


@dataclass(frozen=True)
class SearchState(State):
    """s and, while an update waits for its word, the context it will use."""

    hidden_NH: Tensor
    context_NC: Tensor


class RNNsearch(TranslationModel):
    """See the module's docstring."""

    def __init__(self, config: RNNsearchConfig, source_words: int, target_words: int) -> None:
        super().__init__()
        self.config = config
        self.target_words = target_words
        hidden, embedding = config.hidden, config.embedding
        self.source_embedding = WordEmbedding(source_words, embedding)
        self.target_embedding = WordEmbedding(target_words, embedding)
        self.encoder = RecurrentEncoder(embedding, hidden)
        self.backward_encoder = RecurrentEncoder(embedding, hidden, backward=True)
        self.initial = nn.Linear(hidden, hidden)
        self.attention = AdditiveAttention(hidden, 2 * hidden, config.alignment)
        self.word_inputs = GateInputs(embedding, hidden, bias=True)
        self.context_inputs = GateInputs(2 * hidden, hidden, bias=False)
        self.unit = GatedUnit(hidden)
        self.readout = MaxoutReadout(hidden, embedding, 2 * hidden, config.maxout)
        tied = self.target_embedding if config.tied else None
        self.output = OutputLayer(
            config.maxout, target_words, rank=embedding if config.tied else config.output_rank, tied=tied
        )
        self.dropout = nn.Dropout(config.dropout)
        self.embedding_dropout = nn.Dropout(config.embedding_dropout)

    def encode(self, source: Padded) -> Annotations:
        """Annotations of B sentences (section 3.2)."""
        embedded_BSE = self.embedding_dropout(self.source_embedding.known(source.words_BL))
        directions = [encoder(embedded_BSE, source.mask_BL) for encoder in (self.encoder, self.backward_encoder)]
        annotations_BSC = self.dropout(torch.cat(directions, dim=2))
        return Annotations(annotations_BSC, self.attention.keys(annotations_BSC), source.mask_BL)

    def start(self, memory: Memory) -> SearchState:
        """s_0 = tanh(W_s h_1 + b_s) with the backward state at the first word (appendix A.2.2)."""
        assert isinstance(memory, Annotations)
        first_BH = memory.annotations_BSC[:, 0, self.config.hidden :]
        hidden_BH = torch.tanh(self.initial(first_BH))
        return SearchState(hidden_BH, hidden_BH.new_zeros(hidden_BH.shape[0], 2 * self.config.hidden))

    def step(self, previous_N: Tensor, state: State, memory: Memory) -> Step:
        """Advance by one word."""
        assert isinstance(state, SearchState) and isinstance(memory, Annotations)
        look = self._look(memory)
        embedded_NE = self.target_embedding(previous_N)
        hidden_NH = state.hidden_NH
        if self.config.order == "look-generate-update":
            context_N3H = self.context_inputs(state.context_NC)
            updated_NH = self.unit(self.word_inputs(embedded_NE), hidden_NH, context_N3H)
            hidden_NH = torch.where((previous_N == NO_WORD).unsqueeze(1), hidden_NH, updated_NH)
        context_NC, weights_NS = look(hidden_NH)
        if self.config.order == "conditional":
            hidden_NH = self.unit(self.word_inputs(embedded_NE), hidden_NH, self.context_inputs(context_NC))
        readout_NL = self.readout(hidden_NH, embedded_NE, self.readout.context(context_NC))
        return Step(readout_NL, SearchState(hidden_NH, context_NC), weights_NS)

    def readouts(self, batch: Batch) -> Tensor:
        """As ``step`` for a known target, with all that does not depend on the recurrence outside the loop."""
        memory = self.encode(batch.source)
        shifted_BTE = self.embedding_dropout(self.target_embedding.shifted(batch.target.words_BL))
        inputs_T = self.word_inputs(shifted_BTE).unbind(dim=1)
        hidden_NH = self.start(memory).hidden_NH
        look, unit, context_inputs = (
            self._look(memory),
            self.unit.recurrence(),
            SharedMatrix(self.context_inputs.weight),
        )
        hiddens: list[Tensor] = []
        contexts: list[Tensor] = []
        for position, inputs_N3H in enumerate(inputs_T):
            if self.config.order == "look-generate-update" and position > 0:
                hidden_NH = unit(inputs_N3H, hidden_NH, context_inputs(contexts[-1]))
            context_NC, _ = look(hidden_NH)
            if self.config.order == "conditional":
                hidden_NH = unit(inputs_N3H, hidden_NH, context_inputs(context_NC))
            hiddens.append(hidden_NH)
            contexts.append(context_NC)
        context_part = self.readout.context(torch.stack(contexts, dim=1))
        readouts_BTL: Tensor = self.dropout(self.readout(torch.stack(hiddens, dim=1), shifted_BTE, context_part))
        return readouts_BTL

    def _look(self, memory: Annotations) -> Look:
        return self.attention.look(memory.annotations_BSC, memory.keys_BSA, memory.mask_BS)

    def logits(self, readout_NL: Tensor, candidates_C: Tensor | None = None) -> Tensor:
        """W_o t + b (appendix A.2.2)."""
        logits: Tensor = self.output(readout_NL, candidates_C)
        return logits
