"""A recurrent language model of the target (Mikolov et al. 2010): p(target), whatever the source.

It is a decoder without a context that reads nothing of its source, so that training, scoring, search and
serving need nothing new; as a feature of n-best lists it is asked with an empty source. Its cell is that
of Cho et al. 2014 or, with ``cell: lstm``, an LSTM.
"""

from __future__ import annotations

from typing import Literal, Self

from pydantic import Field, model_validator
from torch import nn

from nmt_core.layers.reader import NoReader
from nmt_core.layers.readout import StateReadout
from nmt_core.layers.recurrent import MOST_LAYERS, Stack, UpperLayers
from nmt_core.models.config import RecurrentConfig
from nmt_core.models.context import NoContext
from nmt_core.models.encoder_decoder import EncoderDecoder, RecurrentDecoder


class RNNLMConfig(RecurrentConfig):
    """Sizes, and the number of layers."""

    type: Literal["rnnlm"] = "rnnlm"
    depth: int = Field(default=1, ge=1, le=MOST_LAYERS)

    @model_validator(mode="after")
    def _goes_together(self) -> Self:
        if self.residual and self.depth == 1:
            raise ValueError("residual: the first layer adds to nothing; give depth 2 or more")
        return self


class RNNLM(EncoderDecoder):
    """A decoder that reads the words before; ``predicts``: it has a generator of the next."""

    def __init__(self, config: RNNLMConfig, target_words: int, *, predicts: bool = True) -> None:
        super().__init__()
        self.config = config
        self.target_embedding = config.new_embedding(target_words)
        layers = config.layers(config.depth)
        unit = layers.new_cell(config.hidden)
        self.word_inputs = unit.inputs(config.embedding, gate_biases=config.gate_biases)
        self.unit = unit
        self.upper = UpperLayers(layers, config.hidden)
        generator = config.new_generator(config.hidden, self.target_embedding, tied=config.tied) if predicts else None
        self.output = generator
        self.dropout = nn.Dropout(config.dropout)
        decoder = RecurrentDecoder(
            self.target_embedding,
            Stack(self.word_inputs, self.unit, self.upper),
            NoContext(),
            StateReadout(),
            dropout=self.dropout,
        )
        self.assemble(NoReader(), decoder, self.output)
