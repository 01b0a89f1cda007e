"""RNNsearch: attention over the annotations of a bidirectional encoder (Bahdanau et al. 2015).

In the paper's letters (sections 3.1, 3.2, appendix A), with the classes that compute them:

    h_j    = [forward h_j; backward h_j]                            ``RecurrentReader``, two ``RecurrentEncoder``
    s_0    = tanh(W_s (backward h_1) + b_s)                         ``RecurrentModel.start``
    e_ij   = v_a . tanh(W_a s_{i-1} + U_a h_j)                      ``AdditiveAttention``
    c_i    = sum over j of a_ij h_j, a_i = softmax(e_i)             ``AttentiveContext``
    z, r   = sigmoid(W E y + U s_{i-1} + C c_i), each its own       ``GRU``
    s_i    = (1 - z) s_{i-1} + z tanh(W E y + U (r s_{i-1}) + C c_i + b)
    t_i    = max over pairs of (U_o s + V_o E y_{i-1} + C_o c_i + b_o)    ``MaxoutReadout``
    p(y_i) = softmax(W_o t_i + b)                                   ``LinearGenerator``

Which y and s stand in the last four lines is the ``order`` of ``nmt_core.models.encoder_decoder``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from pydantic import Field
from torch import nn

from nmt_core.layers.attention import AdditiveAttention
from nmt_core.layers.cells import CELLS
from nmt_core.layers.products import Linear
from nmt_core.layers.reader import RecurrentEncoder, RecurrentReader
from nmt_core.layers.recurrent import Layers
from nmt_core.models.context import AttentiveContext
from nmt_core.models.encoder_decoder import MaxoutReadout, RecurrentModel, TranslationConfig


class RNNsearchConfig(TranslationConfig):
    """Sizes of the paper (appendix A.2.3) unless set otherwise."""

    type: Literal["rnnsearch"] = "rnnsearch"
    alignment: int = Field(default=1000, gt=0)


class RNNsearch(RecurrentModel):
    """Bidirectional encoder, additive attention, gated decoder, maxout readout."""

    attends = True

    def __init__(
        self, config: RNNsearchConfig, source_words: int, target_words: int, factor_words: Sequence[int] = ()
    ) -> None:
        super().__init__()
        self.config = config
        hidden, embedding = config.hidden, config.embedding
        self.source_embedding, self.target_embedding = config.new_embeddings(source_words, target_words, factor_words)
        layer = Layers(CELLS[config.cell])
        self.encoder = RecurrentEncoder(self.source_embedding.size, hidden, layer)
        self.backward_encoder = RecurrentEncoder(self.source_embedding.size, hidden, layer, backward=True)
        self.initial = Linear(hidden, hidden)
        self.attention = AdditiveAttention(hidden, 2 * hidden, config.alignment)
        unit = CELLS[config.cell](hidden)
        self.word_inputs = unit.inputs(embedding)
        self.context_inputs = unit.inputs(2 * hidden, bias=False)
        self.unit = unit
        self.readout = MaxoutReadout(hidden, embedding, 2 * hidden, config.maxout)
        self.output = self.generator = config.new_generator(config.maxout, self.target_embedding)
        self.dropout = nn.Dropout(config.dropout)
        directions = [self.encoder, self.backward_encoder]
        self.source_encoder = RecurrentReader(self.source_embedding, directions, dropout=self.dropout)
        self.context = AttentiveContext(self.attention, self.context_inputs, self.readout.context)
        self.waits = config.order == "look-generate-update"
