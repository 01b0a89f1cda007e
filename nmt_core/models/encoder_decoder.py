"""Models made of parts: an encoder, a decoder, and the generator of words.

``RecurrentDecoder`` is the decoder of Cho et al. 2014 and Bahdanau et al. 2015, made of parts too: the
vectors of the words written, recurrent layers, a ``Context`` of the source (attention, one vector,
or nothing), and a readout. ``order`` says in which order a step works:

- ``look-generate-update`` (the authors' code; Jean et al. 2015b, Table 1): c_i from s_{i-1}; the word
  y_i from (s_{i-1}, y_{i-1}, c_i); then s_i from (s_{i-1}, y_i, c_i). Here ``step`` is given y_{i-1},
  so it first finishes the update that was waiting for it, then attends and generates.
- ``conditional`` (Bahdanau et al., main text, equation 4): c_i from s_{i-1}; s_i from
  (s_{i-1}, y_{i-1}, c_i); y_i from (s_i, y_{i-1}, c_i).

With several layers the first one attends to the source and reads the context; the others read the one
below, and what the last gives out is read out.

Shapes: as in ``nmt_core.layers``; U the states of all layers side by side.
"""

from __future__ import annotations

import abc
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn

from nmt_core.batches.layout import Layout
from nmt_core.batches.padding import Batch, Padded
from nmt_core.layers.cells import Recurrence
from nmt_core.layers.embedding import WordEmbedding
from nmt_core.layers.generator import Generator
from nmt_core.layers.reader import Reader
from nmt_core.layers.readout import Readout
from nmt_core.layers.recurrent import Stack
from nmt_core.models.context import AttentiveContext, Context
from nmt_core.models.interface import NO_WORD, KnownTargets, Side, Step, TranslationModel
from nmt_core.models.tensor_tree import Memory, State

Order = Literal["look-generate-update", "conditional"]
Addition = Callable[[Tensor], Tensor]
"""What is added in the readout before its maxout, from what the decoder's layers give out: (..., H) -> (..., 2L)."""


class Decoder(nn.Module, abc.ABC):
    """What writes a target, up to what the generator reads."""

    embedding: WordEmbedding
    context: Context

    @abc.abstractmethod
    def start(self, memory: Memory) -> State:
        """See ``TranslationModel``."""

    @abc.abstractmethod
    def step(
        self, previous_N: Tensor, state: State, memory: Memory, layout: Layout | None, addition: Addition | None = None
    ) -> Step:
        """See ``TranslationModel``."""

    @abc.abstractmethod
    def known_targets(self, words_BT: Tensor, memory: Memory, addition: Addition | None = None) -> KnownTargets:
        """See ``TranslationModel``."""


class EncoderDecoder(TranslationModel):
    """A model of an encoder, a decoder and a generator.

    ``assemble`` takes the parts. A model may register their modules under names of its own before: then these are
    the names of its parameters in model folders, and the order of their first values is that of registration.
    """

    source_encoder: Reader
    target_decoder: Decoder
    word_generator: Generator | None

    def assemble(self, encoder: Reader, decoder: Decoder, generator: Generator | None) -> None:
        """Take the parts; without a generator the model reads words and predicts none."""
        self.source_encoder, self.target_decoder, self.word_generator = encoder, decoder, generator

    @property
    def generator(self) -> Generator:
        """The distribution of the next word."""
        assert self.word_generator is not None, "this model predicts no words"
        return self.word_generator

    def embeddings(self) -> Iterator[tuple[Side, WordEmbedding]]:
        """Those of the encoder, if it has some, and of the decoder."""
        if self.source_encoder.embedding is not None:
            yield "source", self.source_encoder.embedding
        yield "target", self.target_decoder.embedding

    def encode(self, source: Padded) -> Memory:
        """What the decoder has to know of B sources."""
        return self.target_decoder.context.remember(self.source_encoder(source))

    def start(self, memory: Memory) -> State:
        """The decoder's first state."""
        return self.target_decoder.start(memory)

    def step(self, previous_N: Tensor, state: State, memory: Memory, layout: Layout | None = None) -> Step:
        """A step of the decoder."""
        return self.target_decoder.step(previous_N, state, memory, layout)

    @property
    def attends(self) -> bool:
        """Whether the decoder does."""
        return isinstance(self.target_decoder.context, AttentiveContext)

    def known_targets(self, batch: Batch) -> KnownTargets:
        """As ``step`` for a known target, with all that does not depend on the recurrence outside the loop."""
        return self.target_decoder.known_targets(batch.target.words_BL, self.encode(batch.source))


@dataclass(frozen=True)
class DecoderState(State):
    """The states of all layers, and what the context adds while an update waits for its word (None: nothing waits)."""

    hidden_NU: Tensor
    context_NG: Tensor | None


class RecurrentDecoder(Decoder):
    """See the module's docstring. ``initial`` makes s_0 of ``context.first`` (None: zeros)."""

    def __init__(
        self,
        embedding: WordEmbedding,
        stack: Stack,
        context: Context,
        readout: Readout,
        *,
        initial: nn.Module | None = None,
        order: Order = "conditional",
        dropout: nn.Module | None = None,
    ) -> None:
        super().__init__()
        self.embedding, self.context, self.readout, self.initial = embedding, context, readout, initial
        self.stack, self.dropout = stack, dropout
        self.waits = order == "look-generate-update"

    def start(self, memory: Memory) -> DecoderState:
        """s_0; other layers begin with zeros."""
        first_BU = self._first(memory)
        waiting = self.waits and self.context.changes
        return DecoderState(
            first_BU, first_BU.new_zeros(len(first_BU), self.stack.unit.input_size) if waiting else None
        )

    def step(
        self, previous_N: Tensor, state: State, memory: Memory, layout: Layout | None, addition: Addition | None = None
    ) -> Step:
        """Advance by one word."""
        assert isinstance(state, DecoderState)
        states_NU = state.hidden_NU
        inputs_NG, *word_part = self.embedding.apply_once(previous_N, self._parts_of_word)
        fixed = None if self.context.changes else self.context.terms(state.hidden_NU, memory, layout)
        if self.waits and not (layout is not None and layout.beginning):
            updated_NU = self.stack.step(inputs_NG, states_NU, state.context_NG if fixed is None else fixed.gates_NG)
            states_NU = torch.where((previous_N == NO_WORD).unsqueeze(1), states_NU, updated_NU)
        terms = fixed or self.context.terms(self.stack.lowest(states_NU), memory, layout)
        if not self.waits:
            states_NU = self.stack.step(inputs_NG, states_NU, terms.gates_NG)
        top_NH = self.stack.top(states_NU)
        context_part = terms.readout_NX
        if addition is not None:
            context_part = addition(top_NH) if context_part is None else context_part + addition(top_NH)
        readout_NL = self.readout.join(top_NH, word_part[0] if word_part else None, context_part)
        kept_NG = terms.gates_NG if state.context_NG is not None else None
        return Step(readout_NL, DecoderState(states_NU, kept_NG), terms.weights_NS)

    def known_targets(self, words_BT: Tensor, memory: Memory, addition: Addition | None = None) -> KnownTargets:
        """As ``step``, with all that does not depend on the recurrence outside the loop."""
        shifted_BTE = self.embedding.shifted(words_BT)
        inputs_BTG, unit = self.stack.inputs_of(shifted_BTE), self.stack.unit
        context = self.context.loop(memory)
        state_BU, *others = self.stack.split(self._first(memory).to(inputs_BTG.dtype))
        recurrence, hiddens = self.stack.first_recurrence(state_BU), []
        for position, inputs_BG in enumerate(inputs_BTG.unbind(dim=1)):
            if self.waits and position > 0:
                state_BU = recurrence(inputs_BG, state_BU, context.gates())
            context.attend(unit.hidden_part(state_BU))
            if not self.waits:
                state_BU = recurrence(inputs_BG, state_BU, context.gates())
            hiddens.append(unit.hidden_part(state_BU))
        top_BTH, _ = self.stack.run_upper(torch.stack(hiddens, dim=1), others, self._run_upper)
        context_part = context.readouts()
        if addition is not None:
            context_part = addition(top_BTH) if context_part is None else context_part + addition(top_BTH)
        readouts_BTL: Tensor = self.readout(top_BTH, shifted_BTE, context_part)
        return KnownTargets(readouts_BTL if self.dropout is None else self.dropout(readouts_BTL), context.attention())

    def _first(self, memory: Memory) -> Tensor:
        """s_0 = tanh(W_s x + b_s), or zeros."""
        source_BH = self.context.first(memory)
        if self.initial is None:
            return self.embedding.weight.new_zeros(len(source_BH), self.stack.state_size)
        return self.stack.start(torch.tanh(self.initial(source_BH)))

    def _parts_of_word(self, embedded: Tensor) -> list[Tensor]:
        part = self.readout.of_word(embedded)
        return [self.stack.inputs(embedded), *([] if part is None else [part])]

    def _run_upper(self, recurrence: Recurrence, inputs_BTG: Tensor, state_BU: Tensor) -> Tensor:
        """The states of a further layer at every position; the first is its first where updates wait."""
        states = []
        for position, inputs_BG in enumerate(inputs_BTG.unbind(dim=1)):
            if position > 0 or not self.waits:
                state_BU = recurrence(inputs_BG, state_BU, None)
            states.append(state_BU)
        return torch.stack(states, dim=1)
