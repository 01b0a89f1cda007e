"""RNN Encoder-Decoder: the source as one vector (Cho et al. 2014).

Two texts describe it, and the config holds their differences:

- the phrase model of Cho et al. 2014 with its supplement: summary c = tanh(V h_N), decoder start
  tanh(V' c), the reset gates the context too (``reset: context``), the state is updated with the word
  before (zero at first) and then read out (``order: conditional``), embeddings and output of rank 100;
- the baseline of Bahdanau et al. 2015: c = h_N, ordinary gated unit, the order of their code
  (``order: look-generate-update``; see ``rnnsearch``).

C c, its gates and C_o c depend on the sentence alone and are computed once, in ``encode``.
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
from nmt_core.layers.readout import MaxoutReadout
from nmt_core.layers.recurrent import ContextResetUnit, GatedUnit, GateInputs, RecurrentEncoder, can_share
from nmt_core.models.interface import NO_WORD, Memory, Side, State, Step, TranslationModel


class RNNencdecConfig(Config):
    """The baseline of Bahdanau et al. 2015 (appendix A.2.3) unless told otherwise."""

    type: Literal["rnnencdec"] = "rnnencdec"
    embedding: int = Field(default=620, gt=0)
    hidden: int = Field(default=1000, gt=0)
    maxout: int = Field(default=500, gt=0)
    output_rank: int | None = Field(default=None, gt=0)
    summary: Literal["last", "tanh"] = "last"
    reset: Literal["state", "context"] = "state"
    order: Literal["look-generate-update", "conditional"] = "look-generate-update"
    dropout: float = Field(default=0.0, ge=0.0, lt=1.0)
    embedding_dropout: float = Field(default=0.0, ge=0.0, lt=1.0)
    tied: bool = False
    initialisation: Initialisation = "paper"


@dataclass(frozen=True)
class Summary(Memory):
    """c, and what it adds to the decoder's gates and to the readout."""

    summary_BH: Tensor
    gates_B3H: Tensor
    readout_B2L: Tensor


@dataclass(frozen=True)
class EncdecState(State):
    """The decoder's hidden state."""

    hidden_NH: Tensor


class RNNencdec(TranslationModel):
    """See the module's docstring."""

    def __init__(self, config: RNNencdecConfig, source_words: int, target_words: int) -> None:
        super().__init__()
        self.config = config
        hidden, embedding = config.hidden, config.embedding
        self.source_embedding = WordEmbedding(source_words, embedding)
        self.target_embedding = WordEmbedding(target_words, embedding)
        self.encoder = RecurrentEncoder(embedding, hidden)
        self.summary = nn.Linear(hidden, hidden, bias=False) if config.summary == "tanh" else None
        self.initial = nn.Linear(hidden, hidden)
        self.word_inputs = GateInputs(embedding, hidden, bias=True)
        self.context_inputs = GateInputs(hidden, hidden, bias=False)
        self.unit = ContextResetUnit(hidden) if config.reset == "context" else GatedUnit(hidden)
        self.readout = MaxoutReadout(hidden, embedding, hidden, config.maxout)
        tied = self.target_embedding if config.tied else None
        self.output = linear_generator(
            config.maxout, target_words, rank=embedding if config.tied else config.output_rank, tied=tied
        )
        self.dropout = nn.Dropout(config.dropout)
        self.embedding_dropout = nn.Dropout(config.embedding_dropout)

    @property
    def generator(self) -> LinearGenerator:
        """The output layer."""
        return self.output

    def embeddings(self) -> Iterator[tuple[Side, WordEmbedding]]:
        """Those of the words it reads."""
        yield "source", self.source_embedding
        yield "target", self.target_embedding

    def encode(self, source: Padded) -> Summary:
        """The summary of B sentences: h_N, or tanh(V h_N)."""
        if can_share(source):
            states_EH, places_BS = self.encoder.shared(self.source_embedding, source)
            ends_B1 = source.mask_BL.sum(dim=1, keepdim=True) - 1
            last_BH = states_EH[places_BS.gather(1, ends_B1).squeeze(1)]
        else:
            embedded_BSE = self.embedding_dropout(self.source_embedding.known(source.words_BL))
            last_BH = self.encoder(embedded_BSE, source.mask_BL)[:, -1]
        summary_BH = self.dropout(last_BH if self.summary is None else torch.tanh(self.summary(last_BH)))
        return Summary(summary_BH, self.context_inputs(summary_BH), self.readout.context(summary_BH))

    def start(self, memory: Memory) -> EncdecState:
        """s_0 = tanh(V' c)."""
        assert isinstance(memory, Summary)
        return EncdecState(torch.tanh(self.initial(memory.summary_BH)))

    def step(self, previous_N: Tensor, state: State, memory: Memory, layout: Layout | None = None) -> Step:
        """Advance by one word."""
        assert isinstance(state, EncdecState) and isinstance(memory, Summary)
        if layout is None:
            here = memory.repeat(previous_N.shape[0] // memory.rows)
        else:
            here = memory.select(layout.sentences_N)
        inputs_N3H, readout_N2L = self.target_embedding.apply_once(
            previous_N, lambda embedded: (self.word_inputs(embedded), self.readout.word(embedded))
        )
        hidden_NH = state.hidden_NH
        if self.config.order == "conditional":
            hidden_NH = self.unit(inputs_N3H, hidden_NH, here.gates_B3H)
        elif layout is None or not layout.beginning:
            updated_NH = self.unit(inputs_N3H, hidden_NH, here.gates_B3H)
            hidden_NH = torch.where((previous_N == NO_WORD).unsqueeze(1), hidden_NH, updated_NH)
        readout_NL = self.readout.join(hidden_NH, readout_N2L, here.readout_B2L)
        return Step(readout_NL, EncdecState(hidden_NH), None)

    def readouts(self, batch: Batch) -> Tensor:
        """As ``step`` for a known target, with all that does not depend on the recurrence outside the loop."""
        memory = self.encode(batch.source)
        shifted_BTE = self.embedding_dropout(self.target_embedding.shifted(batch.target.words_BL))
        inputs_T = self.word_inputs(shifted_BTE).unbind(dim=1)
        hidden_BH = self.start(memory).hidden_NH
        unit = self.unit.recurrence()
        hiddens = []
        for position, inputs_B3H in enumerate(inputs_T):
            if position > 0 or self.config.order == "conditional":
                hidden_BH = unit(inputs_B3H, hidden_BH, memory.gates_B3H)
            hiddens.append(hidden_BH)
        context_part = memory.readout_B2L.unsqueeze(1)
        readouts_BTL: Tensor = self.dropout(self.readout(torch.stack(hiddens, dim=1), shifted_BTE, context_part))
        return readouts_BTL
