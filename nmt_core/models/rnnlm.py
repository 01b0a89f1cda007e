"""A recurrent language model of the target (Mikolov et al. 2010): p(target), whatever the source.

It is a decoder without a context that reads nothing of its source, so that training, scoring, search and
serving need nothing new; as a feature of n-best lists it is asked with an empty source. Its cell is any of ``CELLS``,
the gated unit unless ``cell`` is set.
"""

from __future__ import annotations

from typing import Literal

import torch
from torch import nn

from nmt_core.batches.padding import Padded
from nmt_core.layers.cells import CELLS
from nmt_core.layers.embedding import WordEmbedding
from nmt_core.models.context import Context, EmptyMemory
from nmt_core.models.encoder_decoder import RecurrentConfig, RecurrentModel, StateReadout


class RNNLMConfig(RecurrentConfig):
    """Sizes."""

    type: Literal["rnnlm"] = "rnnlm"


class RNNLM(RecurrentModel):
    """A decoder that reads the words before; ``predicts``: it has a generator of the next."""

    def __init__(self, config: RNNLMConfig, target_words: int, *, predicts: bool = True) -> None:
        super().__init__()
        self.config = config
        self.target_embedding = WordEmbedding(target_words, config.embedding, dropout=config.embedding_dropout)
        unit = CELLS[config.cell](config.hidden)
        self.word_inputs, self.unit = unit.inputs(config.embedding), unit
        if predicts:
            self.output = self.generator = config.new_generator(config.hidden, self.target_embedding)
        self.dropout = nn.Dropout(config.dropout)
        self.context, self.readout = Context(), StateReadout()
        self.initial, self.waits = None, False

    def encode(self, source: Padded) -> EmptyMemory:
        """Nothing but how many sources there are."""
        return EmptyMemory(torch.zeros(source.rows, device=source.words_BL.device))
