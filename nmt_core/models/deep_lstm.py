"""The deep LSTM encoder-decoder, with or without attention (Luong et al. 2015a, 2015b; Luong's thesis, 3.2, 4.1).

L layers of LSTM cells without biases read the source, from its last word to its first (``reverse``; Sutskever et
al. 2014). Their last states are the first ones of the decoder's L layers, which read ``</s>`` and then the words
written. The ``</s>`` of the source is not read. p(y_t) = softmax(W_s x), where x is

- without attention, what the top layer gives out after y_{t-1} has been read;
- with attention the attentional vector of it (``nmt_core.models.luong_attention``). With ``feeding`` the first
  layer reads the attentional vector of the step before beside the word, zeros at first (section 3.3).

Dropout is that of Zaremba et al. 2014, of what every layer reads: all of [e; h~] for the first, and nothing else.

Shapes: as in ``nmt_core.layers``; U the states of all layers side by side.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, Self

import torch
import torch.nn.functional as F
from pydantic import Field, model_validator
from torch import Tensor, nn

from nmt_core.base.interfaces import Aligns
from nmt_core.batches.layout import Layout
from nmt_core.batches.padding import Batch, Padded
from nmt_core.batches.tensor_tree import Memory, State
from nmt_core.layers.attention import AdditiveAttention, Attention
from nmt_core.layers.cells import PlainLSTM
from nmt_core.layers.embedding import WordEmbedding
from nmt_core.layers.generator import LinearGenerator
from nmt_core.layers.init import RANGE, Initialisation
from nmt_core.layers.products import shared_matrix
from nmt_core.layers.reader import Encoded, RecurrentEncoder, RecurrentReader
from nmt_core.layers.recurrent import MOST_LAYERS, Layers, Stack, run_all
from nmt_core.layers.whole_lstm import in_one_call
from nmt_core.models.encoder_decoder import SourceFactorsConfig
from nmt_core.models.interface import KnownTargets, Step, TranslationModel
from nmt_core.models.luong_attention import (
    AttentionalLoop,
    AttentionalReadout,
    DotAttention,
    GeneralAttention,
    LocationAttention,
    MonotonicWindow,
    PredictiveWindow,
    SourceMemory,
    Window,
)
from nmt_core.text.vocabulary import END_ID

Score = Literal["dot", "general", "concat", "location"]
WindowName = Literal["global", "local-m", "local-p"]


class LuongConfig(SourceFactorsConfig):
    """Sizes and settings of Luong et al. 2015b, section 4.1, unless set otherwise.

    ``attention`` is the score (None: no attention), ``window`` the part of the source it is of, with ``radius``
    positions to either side. ``places`` are those that ``attention: location`` has scores for. ``aligns`` says whether
    the attention of a step is of the word then ``written``, or of the one just ``read`` (Luong's thesis, 4.3.3).
    ``output_bias`` adds a bias for every target word.
    """

    type: str
    depth: int = Field(default=4, ge=1, le=MOST_LAYERS)
    embedding: int = Field(default=1000, gt=0)
    hidden: int = Field(default=1000, gt=0)
    reverse: bool = True
    attention: Score | None = None
    window: WindowName = "global"
    radius: int = Field(default=10, ge=1)
    places: int = Field(default=50, ge=1)
    feeding: bool = False
    aligns: Aligns = "written"
    output_bias: bool = False
    dropout: float = Field(default=0.2, ge=0.0, lt=1.0)
    initialisation: Initialisation = "uniform"
    init_range: float = Field(default=RANGE, gt=0, allow_inf_nan=False)

    @model_validator(mode="after")
    def _goes_together(self) -> Self:
        if self.attention is None and self.feeding:
            raise ValueError(
                "feeding: without attention there is no attentional vector; give attention: dot, or another"
            )
        if self.window != "global" and self.attention in (None, "location"):
            raise ValueError(f"window: {self.window} goes with attention by content; give attention: general, or dot")
        if self.aligns == "read" and self.attention in (None, "location"):
            raise ValueError("aligns: read goes with attention by content; give attention: general, dot or concat")
        return self

    def new_readout(self) -> AttentionalReadout | None:
        """The attentional readout, where there is attention."""
        if self.attention is None:
            return None
        return AttentionalReadout(self.hidden, self._new_score(self.attention), self._new_window())

    def _new_score(self, name: Score) -> Attention | LocationAttention:
        match name:
            case "dot":
                return DotAttention()
            case "general":
                return GeneralAttention(self.hidden, self.hidden)
            case "concat":
                return AdditiveAttention(self.hidden, self.hidden, self.hidden)
            case "location":
                return LocationAttention(self.hidden, self.places)

    def _new_window(self) -> Window | None:
        match self.window:
            case "global":
                return None
            case "local-m":
                return MonotonicWindow(self.radius)
            case "local-p":
                return PredictiveWindow(self.hidden, self.radius)


class DeepLSTMConfig(LuongConfig):
    """The deep LSTM."""

    type: Literal["deep-lstm"] = "deep-lstm"


@dataclass(frozen=True)
class DeepState(State):
    """The states of all layers, the last attentional vector where it is fed, and the target position if it counts."""

    layers_NU: Tensor
    fed_NH: Tensor | None
    place_N: Tensor | None


class DeepLSTM(TranslationModel):
    """See the module's docstring."""

    def __init__(
        self, config: LuongConfig, source_words: int, target_words: int, factor_words: Sequence[int] = ()
    ) -> None:
        super().__init__()
        self.config = config
        self.attends, self.aligns = config.attention is not None, config.aligns
        layers = Layers(PlainLSTM, depth=config.depth, dropout=config.dropout)
        factors = zip(factor_words, config.source_factors, strict=True)
        self.source_embedding = WordEmbedding(source_words, config.embedding, factors, dropout=config.dropout)
        self.target_embedding = WordEmbedding(target_words, config.embedding, dropout=config.dropout)
        self.encoder = RecurrentEncoder(self.source_embedding.size, config.hidden, layers, backward=config.reverse)
        self.stack = Stack(layers, config.embedding, config.hidden)
        self.unit, self.word_inputs = self.stack.unit, self.stack.inputs
        self.fed_inputs = self.unit.inputs(config.hidden) if config.feeding else None
        self.upper = self.stack.upper
        self.readout = config.new_readout()
        self.output = self.generator = LinearGenerator(config.hidden, target_words, biased=config.output_bias)
        self.dropout = nn.Dropout(config.dropout)
        self.reader = RecurrentReader(self.source_embedding, [self.encoder], reads_end=False)

    def take_encoder(self, other: DeepLSTM) -> None:
        """Have the encoder, and the source words, in common with another model."""
        self.source_embedding, self.encoder, self.reader = other.source_embedding, other.encoder, other.reader

    def take_decoder(self, other: DeepLSTM) -> None:
        """Have all from the target words to the output in common with another model."""
        self.target_embedding, self.unit, self.word_inputs = other.target_embedding, other.unit, other.word_inputs
        self.fed_inputs, self.upper, self.readout = other.fed_inputs, other.upper, other.readout
        self.stack, self.output, self.generator = other.stack, other.output, other.generator

    def trained(self) -> Iterator[nn.Parameter]:
        """All; biases of outputs, which stay 0, only with ``output_bias``."""
        generators = [module for module in self.modules() if isinstance(module, LinearGenerator)]
        zeros = {id(one.bias) for one in generators if not one.biased}
        return (parameter for parameter in self.parameters() if id(parameter) not in zeros)

    def encode(self, source: Padded) -> SourceMemory:
        """Read B sources."""
        return self.remember(self.reader(source))

    def source_vectors(self, source: Padded) -> Tensor:
        """The last layer's h at the last word."""
        encoded: Encoded = self.reader(source)
        return encoded.ends[0]

    def remember(self, encoded: Encoded) -> SourceMemory:
        """What is needed of B sources that were read."""
        states_BU = encoded.final_states[0]
        return SourceMemory(states_BU) if self.readout is None else self.readout.remember(encoded, states_BU)

    def start(self, memory: Memory) -> DeepState:
        """Where the encoder has ended."""
        assert isinstance(memory, SourceMemory)
        states_BU = memory.states_BU
        fed_BH = None if self.fed_inputs is None else states_BU.new_zeros(len(states_BU), self.config.hidden)
        counts = self.readout is not None and self.readout.counts_places
        place_B = states_BU.new_zeros(len(states_BU), dtype=torch.int64) if counts else None
        return DeepState(states_BU, fed_BH, place_B)

    def step(self, previous_N: Tensor, state: State, memory: Memory, layout: Layout | None = None) -> Step:
        """Read the word before, ``</s>`` at the beginning, and then attend."""
        assert isinstance(state, DeepState) and isinstance(memory, SourceMemory)
        (inputs_NG,) = self.target_embedding.apply_once(
            _read(previous_N), lambda embedded: [self.word_inputs(embedded)]
        )
        fed_NG = None if self.fed_inputs is None else self.fed_inputs(state.fed_NH)
        layers_NU = self.stack.recurrence()(inputs_NG, state.layers_NU, fed_NG)
        top_NH = self.stack.top(layers_NU)
        if self.readout is None:
            return Step(top_NH, DeepState(layers_NU, None, None), None)
        readout_NH, weights_NS = AttentionalLoop(self.readout, memory)(top_NH, state.place_N, layout)
        fed_NH = None if self.fed_inputs is None else readout_NH
        place_N = None if state.place_N is None else state.place_N + 1
        return Step(readout_NH, DeepState(layers_NU, fed_NH, place_N), weights_NS)

    def known_targets(self, batch: Batch) -> KnownTargets:
        """As ``step``; without feeding, all layers one after the other and then attention from all positions."""
        return self.decode(batch.target, self.encode(batch.source))[0]

    def decode(self, target: Padded, memory: SourceMemory) -> tuple[KnownTargets, Tensor]:
        """All steps of known targets, and what the top layer gives out at all positions, (B, T, H)."""
        words_BT = F.pad(target.words_BL[:, :-1], (1, 0), value=END_ID)
        embedded_BTE = self.target_embedding(words_BT)
        if self.fed_inputs is not None:
            return self._fed(self.word_inputs(embedded_BTE), memory)
        top_BTH = self._tops(embedded_BTE, memory.states_BU)
        if self.readout is None:
            return KnownTargets(top_BTH, None), top_BTH
        return KnownTargets(*AttentionalLoop(self.readout, memory).all_positions(top_BTH)), top_BTH

    def _tops(self, embedded_BTE: Tensor, states_BU: Tensor) -> Tensor:
        """What the top layer gives out at all positions, (B, T, H)."""
        if in_one_call(self.unit, embedded_BTE):
            return self.stack.run_in_calls(embedded_BTE, states_BU)[0]
        inputs_BTG = self.word_inputs(embedded_BTE)
        return self.stack.run(inputs_BTG, states_BU.to(inputs_BTG.dtype), run_all)[0]

    def _fed(self, inputs_BTG: Tensor, memory: SourceMemory) -> tuple[KnownTargets, Tensor]:
        """Position by position."""
        assert self.fed_inputs is not None and self.readout is not None
        loop, fed_product = AttentionalLoop(self.readout, memory), shared_matrix(self.fed_inputs.weight)
        step, states_BU = self.stack.recurrence(), memory.states_BU.to(inputs_BTG.dtype)
        fed_BH = inputs_BTG.new_zeros(len(inputs_BTG), self.config.hidden)
        readouts, weights, tops = [], [], []
        for place, inputs_BG in enumerate(inputs_BTG.unbind(dim=1)):
            states_BU = step(inputs_BG, states_BU, fed_product(self.dropout(fed_BH)))
            hidden_BH = self.stack.top(states_BU)
            fed_BH, weights_BS = loop(hidden_BH, torch.full_like(memory.states_BU[:, 0], place, dtype=torch.int64))
            readouts.append(fed_BH)
            weights.append(weights_BS)
            tops.append(hidden_BH)
        readouts_BTH, weights_BTS, tops_BTH = (torch.stack(one, dim=1) for one in (readouts, weights, tops))
        return KnownTargets(readouts_BTH, weights_BTS), tops_BTH


def _read(previous_N: Tensor) -> Tensor:
    """The words read: ``</s>`` where there is none."""
    return torch.where(previous_N < 0, END_ID, previous_N)
