"""RNNsearch: attention over the annotations of a bidirectional encoder (Bahdanau et al. 2015).

Its decoder and what ``order`` means: ``nmt_core.models.encoder_decoder``. s_0 = tanh(W_s h_1 + b_s) with the
backward state at the first word (appendix A.2.2).
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field
from torch import nn

from nmt_core.config import Config
from nmt_core.layers.attention import AdditiveAttention
from nmt_core.layers.cells import GRU
from nmt_core.layers.embedding import WordEmbedding
from nmt_core.layers.generator import linear_generator
from nmt_core.layers.initialisation import Initialisation, Linear
from nmt_core.layers.readout import MaxoutReadout
from nmt_core.layers.recurrent import RecurrentEncoder, RecurrentReader
from nmt_core.models.context import AttentiveContext
from nmt_core.models.encoder_decoder import EncoderDecoder, Order, RecurrentDecoder


class RNNsearchConfig(Config):
    """Sizes of the paper (appendix A.2.3) unless told otherwise."""

    type: Literal["rnnsearch"] = "rnnsearch"
    embedding: int = Field(default=620, gt=0)
    hidden: int = Field(default=1000, gt=0)
    alignment: int = Field(default=1000, gt=0)
    maxout: int = Field(default=500, gt=0)
    output_rank: int | None = Field(default=None, gt=0)
    order: Order = "look-generate-update"
    dropout: float = Field(default=0.0, ge=0.0, lt=1.0)
    embedding_dropout: float = Field(default=0.0, ge=0.0, lt=1.0)
    tied: bool = False
    initialisation: Initialisation = "paper"


class RNNsearch(EncoderDecoder):
    """Bidirectional encoder, additive attention, gated decoder, maxout readout."""

    def __init__(self, config: RNNsearchConfig, source_words: int, target_words: int) -> None:
        super().__init__()
        self.config = config
        hidden, embedding = config.hidden, config.embedding
        self.source_embedding = WordEmbedding(source_words, embedding, dropout=config.embedding_dropout)
        self.target_embedding = WordEmbedding(target_words, embedding, dropout=config.embedding_dropout)
        self.encoder = RecurrentEncoder(embedding, hidden)
        self.backward_encoder = RecurrentEncoder(embedding, hidden, backward=True)
        self.initial = Linear(hidden, hidden)
        self.attention = AdditiveAttention(hidden, 2 * hidden, config.alignment)
        unit = GRU(hidden)
        self.word_inputs = unit.inputs(embedding)
        self.context_inputs = unit.inputs(2 * hidden, bias=False)
        self.unit = unit
        self.readout = MaxoutReadout(hidden, embedding, 2 * hidden, config.maxout)
        self.output = linear_generator(
            config.maxout,
            target_words,
            rank=embedding if config.tied else config.output_rank,
            tied=self.target_embedding if config.tied else None,
        )
        self.dropout = nn.Dropout(config.dropout)
        directions = [self.encoder, self.backward_encoder]
        decoder = RecurrentDecoder(
            self.target_embedding,
            (self.word_inputs, self.unit),
            AttentiveContext(self.attention, self.context_inputs, self.readout.context),
            self.readout,
            initial=self.initial,
            order=config.order,
            dropout=self.dropout,
        )
        self.assemble(RecurrentReader(self.source_embedding, directions, dropout=self.dropout), decoder, self.output)
