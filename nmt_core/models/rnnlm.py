"""A recurrent language model of the target (Mikolov et al. 2010): p(target), whatever the source.

It is a decoder without a context that reads nothing of its source, so that training, scoring, search and
serving need nothing new; as a feature of n-best lists it is asked with an empty source. Its cell is that
of Cho et al. 2014 or, with ``cell: lstm``, an LSTM.
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field
from torch import nn

from nmt_core.config import Config
from nmt_core.layers.cells import CELLS, CellName
from nmt_core.layers.embedding import WordEmbedding
from nmt_core.layers.generator import linear_generator
from nmt_core.layers.initialisation import Initialisation
from nmt_core.layers.readout import StateReadout
from nmt_core.layers.recurrent import NoReader
from nmt_core.models.context import NoContext
from nmt_core.models.encoder_decoder import EncoderDecoder, RecurrentDecoder


class RNNLMConfig(Config):
    """Sizes; ``tied`` takes the word embeddings as output matrix (Press and Wolf 2017)."""

    type: Literal["rnnlm"] = "rnnlm"
    cell: CellName = "gru"
    embedding: int = Field(default=620, gt=0)
    hidden: int = Field(default=1000, gt=0)
    output_rank: int | None = Field(default=None, gt=0)
    dropout: float = Field(default=0.0, ge=0.0, lt=1.0)
    embedding_dropout: float = Field(default=0.0, ge=0.0, lt=1.0)
    tied: bool = False
    initialisation: Initialisation = "paper"


class RNNLM(EncoderDecoder):
    """A decoder that reads the words before; ``predicts``: it has a generator of the next."""

    def __init__(self, config: RNNLMConfig, source_words: int, target_words: int, *, predicts: bool = True) -> None:
        super().__init__()
        self.config = config
        self.target_embedding = WordEmbedding(target_words, config.embedding, dropout=config.embedding_dropout)
        unit = CELLS[config.cell](config.hidden)
        self.word_inputs = unit.inputs(config.embedding)
        self.unit = unit
        tied = self.target_embedding if config.tied else None
        rank = config.embedding if config.tied else config.output_rank
        self.output = linear_generator(config.hidden, target_words, rank=rank, tied=tied) if predicts else None
        self.dropout = nn.Dropout(config.dropout)
        layer = (self.word_inputs, self.unit)
        decoder = RecurrentDecoder(self.target_embedding, layer, NoContext(), StateReadout(), dropout=self.dropout)
        self.assemble(NoReader(), decoder, self.output)
