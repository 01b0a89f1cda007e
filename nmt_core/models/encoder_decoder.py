"""Models made of parts: an encoder, a decoder, and the generator of words.

``RecurrentModel`` has the decoder of Cho et al. 2014 and Bahdanau et al. 2015, made of parts too: the vectors of the
words written, recurrent layers, a ``Context`` of the source (attention, one vector, or nothing), and a readout. A step
works in one of two orders; ``waits``: in the first.


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
import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn

from nmt_core.batches.layout import Layout
from nmt_core.batches.padding import Batch, Padded
from nmt_core.batches.tensor_tree import Memory, State
from nmt_core.layers.embedding import WordEmbedding
from nmt_core.layers.products import Linear
from nmt_core.layers.reader import RecurrentReader
from nmt_core.layers.recurrent import Stack, run_all
from nmt_core.models.context import Context, SourceContext, StartMemory
from nmt_core.models.interface import NO_WORD, KnownTargets, Step, TranslationModel
from nmt_core.native import kernels

Order = Literal["look-generate-update", "conditional"]
Addition = Callable[[Tensor], Tensor]
"""What is added in the readout before its maxout, from what the decoder's layers give out: (..., H) -> (..., 2L)."""


class Readout(nn.Module, abc.ABC):
    """What the generator reads, from what the decoder gives out, the word before and the context.

    ``word`` makes what the word before adds of its vector, (..., E) -> (..., X); None: nothing.
    """

    word: nn.Module | None

    @abc.abstractmethod
    def join(self, state: Tensor, word_part: Tensor | None, context_part: Tensor | None) -> Tensor:
        """From (..., H), what the word adds and what the context adds -> (..., L)."""


class StateReadout(Readout):
    """The hidden units themselves."""

    def __init__(self) -> None:
        super().__init__()
        self.word = None

    def join(self, state: Tensor, word_part: Tensor | None, context_part: Tensor | None) -> Tensor:
        """The hidden units."""
        return state


class MaxoutReadout(Readout):
    """t = max over pairs of (U_o s + V_o E y + C_o c + b_o), Bahdanau et al. 2015, appendix A.2.2."""

    def __init__(self, hidden: int, embedding: int, context: int, units: int) -> None:
        super().__init__()
        self.state = Linear(hidden, 2 * units)
        self.word = Linear(embedding, 2 * units, biases=0)
        self.context = Linear(context, 2 * units, biases=0)

    def join(self, state: Tensor, word_part: Tensor | None, context_part: Tensor | None) -> Tensor:
        """From s, V_o E y and C_o c (..., 2L) -> (..., L); unit k is the larger of entries 2k and 2k + 1."""
        pairs = self.state(state)
        parts = [part for part in (word_part, context_part) if part is not None]
        if pairs.dim() == 2 and kernels.apply_to(pairs, *parts):
            return kernels.maxout([pairs, *parts])
        for part in parts:
            pairs = pairs + part
        return torch.maximum(pairs[..., 0::2], pairs[..., 1::2])


class EncoderDecoder(TranslationModel):
    """A model of an encoder, a decoder and a generator.

    A model makes its parts and registers them. The name under which a module is registered first is the name of its
    parameters in model directories, and the order of their first values is that of registration.
    """

    source_embedding: WordEmbedding
    source_encoder: RecurrentReader
    target_embedding: WordEmbedding
    context: Context

    def encode(self, source: Padded) -> Memory:
        """What the decoder has to know of B sources."""
        assert isinstance(self.context, SourceContext)
        return self.context.remember(self.source_encoder(source))

    def known_targets(self, batch: Batch) -> KnownTargets:
        """As ``step`` for a known target, with all that does not depend on the recurrence outside the loop."""
        return self.decode(batch.target.words_BL, self.encode(batch.source))

    @abc.abstractmethod
    def decode(self, words_BT: Tensor, memory: Memory) -> KnownTargets:
        """``known_targets`` of sources that were read."""


@dataclass(frozen=True)
class DecoderState(State):
    """The states of all layers, and what the context adds while an update waits for its word (None: nothing waits)."""

    hidden_NU: Tensor
    context_NG: Tensor | None


class RecurrentModel(EncoderDecoder):
    """See the module's docstring. ``initial`` makes s_0 of the memory's ``first_BH`` (None: zeros)."""

    stack: Stack
    readout: Readout
    initial: nn.Module | None
    dropout: nn.Module
    waits: bool

    def start(self, memory: Memory) -> DecoderState:
        """s_0 = tanh(W_s x + b_s), or zeros; other layers begin with zeros.

        No update waits, which a zero term of the context stands for.
        """
        if self.initial is None:
            first_BU = self.target_embedding.weight.new_zeros(memory.rows, self.stack.state_size)
        else:
            assert isinstance(memory, StartMemory)
            first_BU = self.stack.start(torch.tanh(self.initial(memory.first_BH)))
        waits = self.waits and self.context.changes
        return DecoderState(first_BU, first_BU.new_zeros(len(first_BU), self.stack.unit.input_size) if waits else None)

    def step(
        self,
        previous_N: Tensor,
        state: State,
        memory: Memory,
        layout: Layout | None = None,
        addition: Addition | None = None,
    ) -> Step:
        """Advance by one word."""
        assert isinstance(state, DecoderState)
        states_NU, of_stack = state.hidden_NU, self.stack.recurrence()
        of_word = [part for part in (self.stack.inputs, self.readout.word) if part is not None]
        inputs_NG, *word_part = self.target_embedding.apply_once(
            previous_N, lambda embedded: [part(embedded) for part in of_word]
        )
        fixed = None if self.context.changes else self.context.terms(states_NU, memory, layout)
        if self.waits and not (layout is not None and layout.beginning):
            updated_NU = of_stack(inputs_NG, states_NU, state.context_NG if fixed is None else fixed.gates_NG)
            states_NU = torch.where((previous_N == NO_WORD).unsqueeze(1), states_NU, updated_NU)
        terms = fixed or self.context.terms(states_NU[:, : self.stack.unit.hidden], memory, layout)
        if not self.waits:
            states_NU = of_stack(inputs_NG, states_NU, terms.gates_NG)
        top_NH = self.stack.top(states_NU)
        context_part = terms.readout_NX
        if addition is not None:
            assert context_part is not None
            context_part = context_part + addition(top_NH)
        readout_NL = self.readout.join(top_NH, word_part[0] if word_part else None, context_part)
        kept_NG = terms.gates_NG if state.context_NG is not None else None
        return Step(readout_NL, DecoderState(states_NU, kept_NG), terms.weights_NS)

    def decode(self, words_BT: Tensor, memory: Memory, addition: Addition | None = None) -> KnownTargets:
        """All steps of known targets."""
        shifted_BTE = self.target_embedding.shifted(words_BT)
        inputs_BTG, unit = self.stack.first_inputs(shifted_BTE), self.stack.unit
        context = self.context.loop(memory)
        state_BU, *others = self.start(memory).hidden_NU.to(inputs_BTG.dtype).split(self.stack.sizes, dim=1)
        recurrence, hiddens = self.stack.first_recurrence(state_BU), []
        for position, inputs_BG in enumerate(inputs_BTG.unbind(dim=1)):
            if self.waits and position > 0:
                state_BU = recurrence(inputs_BG, state_BU, context.gates())
            context.attend(unit.hidden_part(state_BU))
            if not self.waits:
                state_BU = recurrence(inputs_BG, state_BU, context.gates())
            hiddens.append(unit.hidden_part(state_BU))
        run = functools.partial(run_all, waits=self.waits)
        top_BTH, _ = self.stack.run_upper(torch.stack(hiddens, dim=1), others, run)
        context_part = context.readouts()
        if addition is not None:
            assert context_part is not None
            context_part = context_part + addition(top_BTH)
        word_part = None if self.readout.word is None else self.readout.word(shifted_BTE)
        readouts_BTL = self.readout.join(top_BTH, word_part, context_part)
        return KnownTargets(self.dropout(readouts_BTL), context.attention())
