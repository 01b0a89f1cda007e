"""RNN Encoder-Decoder: the source as one vector (Cho et al. 2014).

Two texts describe it, and the config holds their differences:

- the phrase model of Cho et al. 2014 with its supplement: summary c = tanh(V h_N), decoder start
  tanh(V' c), the reset gates the context too (``reset: context``), the state is updated with the word
  before (zero at first) and then read out (``order: conditional``), embeddings and output of rank 100;
- the baseline of Bahdanau et al. 2015: c = h_N, ordinary gated unit, the order of their code
  (``order: look-generate-update``; see ``nmt_core.models.encoder_decoder``).
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field
from torch import nn

from nmt_core.config import Config
from nmt_core.layers.cells import GRU, ContextResetGRU
from nmt_core.layers.embedding import WordEmbedding
from nmt_core.layers.generator import linear_generator
from nmt_core.layers.initialisation import Initialisation, Linear
from nmt_core.layers.readout import MaxoutReadout
from nmt_core.layers.recurrent import RecurrentEncoder, RecurrentReader
from nmt_core.models.context import FixedContext
from nmt_core.models.encoder_decoder import EncoderDecoder, Order, RecurrentDecoder


class RNNencdecConfig(Config):
    """The baseline of Bahdanau et al. 2015 (appendix A.2.3) unless told otherwise."""

    type: Literal["rnnencdec"] = "rnnencdec"
    embedding: int = Field(default=620, gt=0)
    hidden: int = Field(default=1000, gt=0)
    maxout: int = Field(default=500, gt=0)
    output_rank: int | None = Field(default=None, gt=0)
    summary: Literal["last", "tanh"] = "last"
    reset: Literal["state", "context"] = "state"
    order: Order = "look-generate-update"
    dropout: float = Field(default=0.0, ge=0.0, lt=1.0)
    embedding_dropout: float = Field(default=0.0, ge=0.0, lt=1.0)
    tied: bool = False
    initialisation: Initialisation = "paper"


class RNNencdec(EncoderDecoder):
    """Encoder from the left, its end as the decoder's context, maxout readout."""

    def __init__(self, config: RNNencdecConfig, source_words: int, target_words: int) -> None:
        super().__init__()
        self.config = config
        hidden, embedding = config.hidden, config.embedding
        self.source_embedding = WordEmbedding(source_words, embedding, dropout=config.embedding_dropout)
        self.target_embedding = WordEmbedding(target_words, embedding, dropout=config.embedding_dropout)
        self.encoder = RecurrentEncoder(embedding, hidden)
        self.summary = Linear(hidden, hidden, bias=False) if config.summary == "tanh" else None
        self.initial = Linear(hidden, hidden)
        unit = ContextResetGRU(hidden) if config.reset == "context" else GRU(hidden)
        self.word_inputs = unit.inputs(embedding)
        self.context_inputs = unit.inputs(hidden, bias=False)
        self.unit = unit
        self.readout = MaxoutReadout(hidden, embedding, hidden, config.maxout)
        self.output = linear_generator(
            config.maxout,
            target_words,
            rank=embedding if config.tied else config.output_rank,
            tied=self.target_embedding if config.tied else None,
        )
        self.dropout = nn.Dropout(config.dropout)
        decoder = RecurrentDecoder(
            self.target_embedding,
            (self.word_inputs, self.unit),
            FixedContext(self.context_inputs, self.readout.context, summary=self.summary, dropout=self.dropout),
            self.readout,
            initial=self.initial,
            order=config.order,
            dropout=self.dropout,
        )
        self.assemble(RecurrentReader(self.source_embedding, [self.encoder]), decoder, self.output)
