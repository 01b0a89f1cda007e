"""The encoder-decoder of Nematus, amun and Marian's ``s2s`` (Sennrich et al. 2017, section 2).

A bidirectional encoder gives the annotations h_j. s_0 = tanh(N(W mean(h) + b)). A step of the decoder, the conditional
GRU with attention: s' = GRU_1(e(y_{i-1}), s_{i-1}); c_i attends from s'; s_i = GRU_2(c_i, s'), with further transitions
behind it; t_i = tanh(N(U s_i + b) + N(V e(y_{i-1}) + b) + N(C c_i + b)); p = softmax(W t_i + b). The vector of the word
before the first is zero. Units, transitions and the normalisation N: ``nmt_core.layers.transition_gru``. Written from
Nematus' ``theano`` branch (``nmt.py``: ``build_encoder``, ``build_decoder``) and Marian's ``models/s2s.h``.

Shapes: as in ``nmt_core.layers``; G what an input adds to the gates.
"""

from __future__ import annotations

import dataclasses
import functools
from typing import Literal

import torch
from pydantic import Field
from torch import Tensor, nn

from nmt_core.batches.layout import Layout
from nmt_core.batches.tensor_tree import Memory, State
from nmt_core.config import Config
from nmt_core.layers.embedding import WordEmbedding
from nmt_core.layers.generator import LinearGenerator
from nmt_core.layers.init import RANGE, Initialisation
from nmt_core.layers.products import Linear
from nmt_core.layers.reader import Encoded, RecurrentEncoder, RecurrentReader
from nmt_core.layers.recurrent import MOST_LAYERS, Layers
from nmt_core.layers.transition_gru import (
    Bias,
    Finish,
    FinishedAttention,
    FinishedProduct,
    Normalisation,
    TransitionGRU,
)
from nmt_core.models.context import Annotations, AttentiveContext
from nmt_core.models.encoder_decoder import DecoderState, EncoderDecoder, Readout, check_shared
from nmt_core.models.interface import KnownTargets, Step


class NematusConfig(Config):
    """Sizes of Nematus unless set otherwise.

    ``encoder_transitions`` and ``decoder_transitions`` are those of a step; two of a decoder are the conditional GRU.
    ``tied``: the word embeddings are the output matrix (Press and Wolf 2017); ``shared_embeddings``: source, target and
    output have one matrix of words, of one vocabulary.
    """

    type: Literal["nematus"] = "nematus"
    embedding: int = Field(default=512, gt=0)
    hidden: int = Field(default=1000, gt=0)
    encoder_transitions: int = Field(default=1, ge=1, le=MOST_LAYERS)
    decoder_transitions: int = Field(default=2, ge=2, le=MOST_LAYERS)
    normalisation: Normalisation = "none"
    tied: bool = False
    shared_embeddings: bool = False
    dropout: float = Field(default=0.0, ge=0.0, lt=1.0)
    embedding_dropout: float = Field(default=0.0, ge=0.0, lt=1.0)
    initialisation: Initialisation = "glorot"
    init_range: float = Field(default=RANGE, gt=0, allow_inf_nan=False)

    def new_embedding(self, words: int) -> WordEmbedding:
        """Word vectors of the model's size."""
        return WordEmbedding(words, self.embedding, dropout=self.embedding_dropout)


class MeanStart(AttentiveContext):
    """Attention of a decoder that begins with the mean of the annotations."""

    def remember(self, encoded: Encoded) -> Annotations:
        """The mean is over the words of each sentence, its end among them."""
        words_BS1 = encoded.mask_BS.unsqueeze(2)
        annotations_BSC = encoded.annotations()
        sum_BC = (annotations_BSC * words_BS1).sum(dim=1)
        mean_BC = sum_BC / words_BS1.sum(dim=1)
        return dataclasses.replace(super().remember(encoded), first_BH=mean_BC)


class SummedReadout(Readout):
    """t = tanh(N(U s + b) + N(V e + b) + N(C c + b)), with all biases in one where there is no normalisation."""

    word: nn.Module

    def __init__(self, hidden: int, embedding: int, context: int, units: int, normalisation: Normalisation) -> None:
        super().__init__()
        normalised = normalisation != "none"
        self.state = FinishedProduct(hidden, units, bias=True, normalisation=normalisation)
        self.word = FinishedProduct(embedding, units, bias=normalised, normalisation=normalisation)
        self.context = Linear(context, units, biases=0)
        self.after_context = Finish(units, bias=normalised, normalisation=normalisation)

    def join(self, state: Tensor, word_part: Tensor | None, context_part: Tensor | None) -> Tensor:
        """From s, what the word adds and C c (..., L) -> (..., L)."""
        assert word_part is not None and context_part is not None
        return torch.tanh(self.state(state) + word_part + self.after_context(context_part))


class Nematus(EncoderDecoder):
    """See the module's docstring."""

    attends = True

    def __init__(self, config: NematusConfig, source_words: int, target_words: int) -> None:
        super().__init__()
        self.config = config
        hidden, embedding, kind = config.hidden, config.embedding, config.normalisation
        if config.shared_embeddings:
            check_shared(source_words, target_words)
        self.source_embedding = config.new_embedding(source_words)
        self.target_embedding = (
            self.source_embedding if config.shared_embeddings else config.new_embedding(target_words)
        )
        free: list[Bias] = ["free"] * (config.encoder_transitions - 1)
        layers = Layers(functools.partial(TransitionGRU, biases=["none", *free], normalisation=kind))
        self.encoder = RecurrentEncoder(embedding, hidden, layers)
        self.backward_encoder = RecurrentEncoder(embedding, hidden, layers, backward=True)
        self.initial = FinishedProduct(2 * hidden, hidden, bias=True, normalisation=kind)
        self.first_unit = TransitionGRU(hidden, ["none"], kind)
        self.word_inputs = self.first_unit.inputs(embedding)
        self.attention = FinishedAttention(hidden, 2 * hidden, 2 * hidden, kind)
        further: list[Bias] = ["reset"] * (config.decoder_transitions - 1)
        self.second_unit = TransitionGRU(hidden, further, kind)
        self.context_inputs = self.second_unit.inputs(2 * hidden, bias=False)
        self.readout = SummedReadout(hidden, embedding, 2 * hidden, embedding, kind)
        tied = self.target_embedding if config.tied or config.shared_embeddings else None
        self.output = self.generator = LinearGenerator(embedding, target_words, tied=tied)
        self.dropout = nn.Dropout(config.dropout)
        directions = [self.encoder, self.backward_encoder]
        self.source_encoder = RecurrentReader(self.source_embedding, directions, dropout=self.dropout)
        self.context = MeanStart(self.attention, self.context_inputs, self.readout.context)

    def start(self, memory: Memory) -> DecoderState:
        """s_0."""
        assert isinstance(memory, Annotations)
        return DecoderState(torch.tanh(self.initial(memory.first_BH)), None)

    def step(self, previous_N: Tensor, state: State, memory: Memory, layout: Layout | None = None) -> Step:
        """Read the word before, attend, read the context."""
        assert isinstance(state, DecoderState)
        inputs_NG, word_NL = self.target_embedding.apply_once(
            previous_N, lambda embedded: [self.word_inputs(embedded), self.readout.word(embedded)]
        )
        between_NH = self.first_unit.recurrence()(inputs_NG, state.hidden_NU, None)
        terms = self.context.terms(between_NH, memory, layout)
        assert terms.gates_NG is not None
        hidden_NH = self.second_unit.recurrence()(terms.gates_NG, between_NH, None)
        readout_NL = self.readout.join(hidden_NH, word_NL, terms.readout_NX)
        return Step(readout_NL, DecoderState(hidden_NH, None), terms.weights_NS)

    def decode(self, words_BT: Tensor, memory: Memory) -> KnownTargets:
        """All steps of known targets."""
        shifted_BTE = self.target_embedding.shifted(words_BT)
        context = self.context.loop(memory)
        first, second = self.first_unit.recurrence(), self.second_unit.recurrence()
        state_BH, states = self.start(memory).hidden_NU, []
        for inputs_BG in self.word_inputs(shifted_BTE).unbind(dim=1):
            between_BH = first(inputs_BG, state_BH.to(inputs_BG.dtype), None)
            context.attend(between_BH)
            gates_BG = context.gates()
            assert gates_BG is not None
            state_BH = second(gates_BG, between_BH, None)
            states.append(state_BH)
        readouts_BTL = self.readout.join(torch.stack(states, dim=1), self.readout.word(shifted_BTE), context.readouts())
        return KnownTargets(self.dropout(readouts_BTL), context.attention())
