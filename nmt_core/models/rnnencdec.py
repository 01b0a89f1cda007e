"""RNN Encoder-Decoder: the source as one vector (Cho et al. 2014).

Two texts describe it, and the config holds their differences:

- the phrase model of Cho et al. 2014 with its supplement: summary c = tanh(V h_N), decoder start
  tanh(V' c), the reset gates the context too (``reset: context``), the state is updated with the word
  before (zero at first) and then read out (``order: conditional``), embeddings and output of rank 100;
- the baseline of Bahdanau et al. 2015: c = h_N, ordinary gated unit, the order of their code
  (``order: look-generate-update``; see ``nmt_core.models.encoder_decoder``).

The phrase model in the supplement's letters, with the classes that compute it; here z weights the new candidate:

    c      = tanh(V h_N)                                            ``RecurrentReader``, ``FixedContext``
    h'_0   = tanh(V' c + b)                                         ``RecurrentModel.start``
    z', r' = sigmoid(W' E y_{t-1} + U' h'_{t-1} + C' c), each its own     ``ContextResetGRU``
    h'_t   = (1 - z') h'_{t-1} + z' tanh(W' E y_{t-1} + r' (U' h'_{t-1} + C c) + b)
    s_t    = max over pairs of (O_h h'_t + O_y E y_{t-1} + O_c c + b)     ``MaxoutReadout``
    p(y_t) = softmax(G_l G_r s_t + b)                               ``LinearGenerator``
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, Self

from pydantic import model_validator
from torch import nn

from nmt_core.layers.cells import CELLS, ContextResetGRU
from nmt_core.layers.products import Linear
from nmt_core.layers.reader import RecurrentEncoder, RecurrentReader
from nmt_core.layers.recurrent import Layers
from nmt_core.models.context import FixedContext
from nmt_core.models.encoder_decoder import MaxoutReadout, RecurrentModel, TranslationConfig


class RNNencdecConfig(TranslationConfig):
    """The baseline of Bahdanau et al. 2015 (appendix A.2.3) unless set otherwise."""

    type: Literal["rnnencdec"] = "rnnencdec"
    summary: Literal["last", "tanh"] = "last"
    reset: Literal["state", "context"] = "state"

    @model_validator(mode="after")
    def _has_a_reset(self) -> Self:
        if self.reset == "context" and self.cell != "gru":
            raise ValueError(f"reset: only cell gru has a reset gate for the context, {self.cell} has not")
        return self


class RNNencdec(RecurrentModel):
    """Encoder from the left, its end as the decoder's context, maxout readout."""

    def __init__(
        self, config: RNNencdecConfig, source_words: int, target_words: int, factor_words: Sequence[int] = ()
    ) -> None:
        super().__init__()
        self.config = config
        hidden, embedding = config.hidden, config.embedding
        self.source_embedding, self.target_embedding = config.new_embeddings(source_words, target_words, factor_words)
        self.encoder = RecurrentEncoder(self.source_embedding.size, hidden, Layers(CELLS[config.cell]))
        self.summary = Linear(hidden, hidden, biases=0) if config.summary == "tanh" else None
        self.initial = Linear(hidden, hidden)
        unit = ContextResetGRU(hidden) if config.reset == "context" else CELLS[config.cell](hidden)
        self.word_inputs = unit.inputs(embedding)
        self.context_inputs = unit.inputs(hidden, bias=False)
        self.unit = unit
        self.readout = MaxoutReadout(hidden, embedding, hidden, config.maxout)
        self.output = self.generator = config.new_generator(config.maxout, self.target_embedding)
        self.dropout = nn.Dropout(config.dropout)
        self.source_encoder = RecurrentReader(self.source_embedding, [self.encoder])
        self.context = FixedContext(
            self.context_inputs, self.readout.context, summary=self.summary, dropout=self.dropout
        )
        self.waits = config.order == "look-generate-update"
