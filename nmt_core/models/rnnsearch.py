"""RNNsearch: attention over the annotations of a bidirectional encoder (Bahdanau et al. 2015).

``order`` says in which order a step works:

- ``look-generate-update`` (the authors' code; Jean et al. 2015b, Table 1): c_i from s_{i-1}; the word
  y_i from (s_{i-1}, y_{i-1}, c_i); then s_i from (s_{i-1}, y_i, c_i). Here ``step`` is given y_{i-1},
  so it first finishes the update that was waiting for it, then looks and generates.
- ``conditional`` (Bahdanau et al., main text, equation 4): c_i from s_{i-1}; s_i from
  (s_{i-1}, y_{i-1}, c_i); y_i from (s_i, y_{i-1}, c_i).

Shapes: see ``nmt_core.data.batching`` and ``nmt_core.layers``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

import torch
import torch.nn.functional as F
from pydantic import Field
from torch import Tensor, nn

from nmt_core.config import Config
from nmt_core.data.batching import Batch, Padded
from nmt_core.data.layout import Layout
from nmt_core.layers.attention import AdditiveAttention, Look
from nmt_core.layers.embedding import WordEmbedding
from nmt_core.layers.generator import LinearGenerator, linear_generator
from nmt_core.layers.initialisation import Initialisation
from nmt_core.layers.readout import MaxoutReadout
from nmt_core.layers.recurrent import GatedUnit, GateInputs, RecurrentEncoder, can_share
from nmt_core.layers.shared_product import SharedMatrix
from nmt_core.models.interface import NO_WORD, Memory, Side, State, Step, TranslationModel


class RNNsearchConfig(Config):
    """Sizes of the paper (appendix A.2.3) unless told otherwise."""

    type: Literal["rnnsearch"] = "rnnsearch"
    embedding: int = Field(default=620, gt=0)
    hidden: int = Field(default=1000, gt=0)
    alignment: int = Field(default=1000, gt=0)
    maxout: int = Field(default=500, gt=0)
    output_rank: int | None = Field(default=None, gt=0)
    order: Literal["look-generate-update", "conditional"] = "look-generate-update"
    dropout: float = Field(default=0.0, ge=0.0, lt=1.0)
    embedding_dropout: float = Field(default=0.0, ge=0.0, lt=1.0)
    tied: bool = False
    initialisation: Initialisation = "paper"


@dataclass(frozen=True)
class Annotations(Memory):
    """h_j for every source position, U_a h_j, and the backward state at the first word."""

    annotations_BSC: Tensor
    keys_BSA: Tensor
    mask_BS: Tensor
    first_BH: Tensor


class ProjectedAnnotations(Annotations):
    """C h_j and C_o h_j side by side in place of h_j, for inference.

    A weighted sum of projections is the projection of the weighted sum: with more hypotheses than
    source positions, which search and scoring have, this leaves the larger part of the products out.
    """


@dataclass(frozen=True)
class SearchState(State):
    """s and, while an update waits for its word, what the context adds to it."""

    hidden_NH: Tensor
    context_N3H: Tensor | None


class RNNsearch(TranslationModel):
    """See the module's docstring."""

    def __init__(self, config: RNNsearchConfig, source_words: int, target_words: int) -> None:
        super().__init__()
        self.config = config
        hidden, embedding = config.hidden, config.embedding
        self.source_embedding = WordEmbedding(source_words, embedding)
        self.target_embedding = WordEmbedding(target_words, embedding)
        self.encoder = RecurrentEncoder(embedding, hidden)
        self.backward_encoder = RecurrentEncoder(embedding, hidden, backward=True)
        self.initial = nn.Linear(hidden, hidden)
        self.attention = AdditiveAttention(hidden, 2 * hidden, config.alignment)
        self.word_inputs = GateInputs(embedding, hidden, bias=True)
        self.context_inputs = GateInputs(2 * hidden, hidden, bias=False)
        self.unit = GatedUnit(hidden)
        self.readout = MaxoutReadout(hidden, embedding, 2 * hidden, config.maxout)
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

    def encode(self, source: Padded) -> Annotations:
        """Annotations of B sentences (section 3.2)."""
        if can_share(source):
            return self._encode_once(source)
        embedded_BSE = self.embedding_dropout(self.source_embedding.known(source.words_BL))
        directions = [encoder(embedded_BSE, source.mask_BL) for encoder in (self.encoder, self.backward_encoder)]
        annotations_BSC = self.dropout(torch.cat(directions, dim=2))
        memory = Annotations(
            annotations_BSC,
            self.attention.keys(annotations_BSC),
            source.mask_BL,
            annotations_BSC[:, 0, self.config.hidden :],
        )
        return memory if torch.is_grad_enabled() else self._project(memory)

    def _project(self, memory: Annotations) -> ProjectedAnnotations:
        projected_BSC = F.linear(memory.annotations_BSC, self._projection())
        return ProjectedAnnotations(projected_BSC, memory.keys_BSA, memory.mask_BS, memory.first_BH)

    def _encode_once(self, source: Padded) -> ProjectedAnnotations:
        """The same with every distinct state computed, and projected, once."""
        left_EH, left_BS = self.encoder.shared(self.source_embedding, source)
        right_EH, right_BS = self.backward_encoder.shared(self.source_embedding, source)
        places_P2 = torch.stack([left_BS, right_BS + len(left_EH)], dim=2).flatten(0, 1)
        projected_BSC, keys_BSA = (
            F.embedding_bag(places_P2, _halves(left_EH, right_EH, weight), mode="sum").view(*left_BS.shape, -1)
            for weight in (self._projection(), self.attention.key.weight)
        )
        return ProjectedAnnotations(projected_BSC, keys_BSA, source.mask_BL, right_EH.index_select(0, right_BS[:, 0]))

    def _projection(self) -> Tensor:
        return torch.cat([self.context_inputs.weight, self.readout.context.weight])

    def start(self, memory: Memory) -> State:
        """s_0 = tanh(W_s h_1 + b_s) with the backward state at the first word (appendix A.2.2)."""
        return self.first_state(memory)

    def first_state(self, memory: Memory) -> SearchState:
        """``start``."""
        assert isinstance(memory, Annotations)
        hidden_BH = torch.tanh(self.initial(memory.first_BH))
        waits = self.config.order == "look-generate-update"
        return SearchState(
            hidden_BH, hidden_BH.new_zeros(hidden_BH.shape[0], 3 * self.config.hidden) if waits else None
        )

    def step(self, previous_N: Tensor, state: State, memory: Memory, layout: Layout | None = None) -> Step:
        """Advance by one word."""
        return self.look_and_generate(previous_N, state, memory, layout)

    def look_and_generate(
        self,
        previous_N: Tensor,
        state: State,
        memory: Memory,
        layout: Layout | None = None,
        *,
        more: Callable[[Tensor], Tensor] | None = None,
    ) -> Step:
        """``step``; ``more`` says what the state (N, H) has to add to the readout (N, 2L) before its maxout."""
        assert isinstance(state, SearchState) and isinstance(memory, Annotations)
        inputs_N3H, word_N2L = self.target_embedding.apply_once(
            previous_N, lambda embedded: (self.word_inputs(embedded), self.readout.word(embedded))
        )
        hidden_NH = state.hidden_NH
        if state.context_N3H is not None and not (layout is not None and layout.beginning):
            updated_NH = self.unit(inputs_N3H, hidden_NH, state.context_N3H)
            hidden_NH = torch.where((previous_N == NO_WORD).unsqueeze(1), hidden_NH, updated_NH)
        context_NC, weights_NS = self._look(memory)(hidden_NH, layout)
        context_N3H, context_N2L = self._context_parts(context_NC, memory)
        if state.context_N3H is None:
            hidden_NH = self.unit(inputs_N3H, hidden_NH, context_N3H)
        if more is not None:
            context_N2L = context_N2L + more(hidden_NH)
        readout_NL = self.readout.join(hidden_NH, word_N2L, context_N2L)
        return Step(readout_NL, SearchState(hidden_NH, None if state.context_N3H is None else context_N3H), weights_NS)

    def _context_parts(self, context_NC: Tensor, memory: Annotations) -> tuple[Tensor, Tensor]:
        """C c with its gates, and C_o c."""
        if isinstance(memory, ProjectedAnnotations):
            context_N3H, context_N2L = context_NC.split((3 * self.config.hidden, 2 * self.config.maxout), dim=-1)
            return context_N3H, context_N2L
        return self.context_inputs(context_NC), self.readout.context(context_NC)

    def readouts(self, batch: Batch) -> Tensor:
        """As ``step`` for a known target, with all that does not depend on the recurrence outside the loop."""
        return self.all_readouts(batch)

    def all_readouts(self, batch: Batch, *, more: Callable[[Tensor], Tensor] | None = None) -> Tensor:
        """``readouts``; ``more`` says what the states (B, T, H) have to add before the maxout, (B, T, 2L)."""
        memory = self.encode(batch.source)
        shifted_BTE = self.embedding_dropout(self.target_embedding.shifted(batch.target.words_BL))
        inputs_T = self.word_inputs(shifted_BTE).unbind(dim=1)
        hidden_NH = self.first_state(memory).hidden_NH
        look, unit = self._look(memory), self.unit.recurrence()
        projected, gates = isinstance(memory, ProjectedAnnotations), 3 * self.config.hidden
        inputs_of = SharedMatrix(self.context_inputs.weight)
        hiddens: list[Tensor] = []
        contexts: list[Tensor] = []
        for position, inputs_N3H in enumerate(inputs_T):
            if self.config.order == "look-generate-update" and position > 0:
                context_N3H = contexts[-1][:, :gates] if projected else inputs_of(contexts[-1])
                hidden_NH = unit(inputs_N3H, hidden_NH, context_N3H)
            context_NC, _ = look(hidden_NH)
            if self.config.order == "conditional":
                hidden_NH = unit(inputs_N3H, hidden_NH, context_NC[:, :gates] if projected else inputs_of(context_NC))
            hiddens.append(hidden_NH)
            contexts.append(context_NC)
        contexts_BTC = torch.stack(contexts, dim=1)
        context_part = contexts_BTC[..., gates:] if projected else self.readout.context(contexts_BTC)
        hiddens_BTH = torch.stack(hiddens, dim=1)
        if more is not None:
            context_part = context_part + more(hiddens_BTH)
        readouts_BTL: Tensor = self.dropout(self.readout(hiddens_BTH, shifted_BTE, context_part))
        return readouts_BTL

    def _look(self, memory: Annotations) -> Look:
        return self.attention.look(memory.annotations_BSC, memory.keys_BSA, memory.mask_BS)


def _halves(left_EH: Tensor, right_EH: Tensor, weight_X2H: Tensor) -> Tensor:
    """What states of each direction add to products with the whole annotation, one below the other."""
    product = left_EH.new_empty(len(left_EH) + len(right_EH), len(weight_X2H))
    left_weight, right_weight = weight_X2H.chunk(2, dim=1)
    torch.mm(left_EH, left_weight.t(), out=product[: len(left_EH)])
    torch.mm(right_EH, right_weight.t(), out=product[len(left_EH) :])
    return product
