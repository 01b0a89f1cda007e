"""What the source adds to a decoder, step by step.

A ``Context`` keeps in its memory what it needs of an encoded source, and has two terms for every step: one is
added to the gates of the decoder's cell, the other in the readout. Both are linear in the context vector: a fixed
vector (Cho et al. 2014) is multiplied once per sentence, and with attention (Bahdanau et al. 2015) the annotations
themselves are multiplied, for inference, since a weighted sum of products is the product of the weighted sum.

Shapes: B sentences, S positions, N rows, T target positions, C annotation, G gates, X what the readout adds.
"""

from __future__ import annotations

import abc
from dataclasses import dataclass, field
from typing import NamedTuple

import torch
from torch import Tensor, nn

from nmt_core.batches.layout import Layout
from nmt_core.layers.attention import Attention, AttentionContext
from nmt_core.layers.cells import GateInputs
from nmt_core.layers.products import shared_matrix
from nmt_core.layers.reader import Encoded
from nmt_core.models.tensor_tree import SOURCE_AXIS, Memory


class ContextTerms(NamedTuple):
    """What the context of a step adds to the gates and in the readout (None: nothing), and its attention weights."""

    gates_NG: Tensor | None
    readout_NX: Tensor | None
    weights_NS: Tensor | None


class StepContext(abc.ABC):
    """The context of one step."""

    def pending_gates(self, gates_NG: Tensor | None) -> Tensor | None:
        """The term of the gates in the update that the step before has left: the one kept, or that of every step."""
        return gates_NG

    @abc.abstractmethod
    def attend(self, hidden_NH: Tensor) -> ContextTerms:
        """The terms at states."""


class LoopContext(abc.ABC):
    """The context of a loop over known targets, one row per sentence."""

    @abc.abstractmethod
    def attend(self, hidden_BH: Tensor) -> None:
        """Go on to a further position, with its states."""

    @abc.abstractmethod
    def gates(self) -> Tensor | None:
        """The term of the gates at the last position, (B, G)."""

    def attention(self) -> Tensor | None:
        """The attention weights of all positions, (B, T, S)."""
        return None

    @abc.abstractmethod
    def readouts(self) -> Tensor | None:
        """The terms of the readouts at all positions, (B, T, X) or (B, 1, X)."""


class Context(nn.Module, abc.ABC):
    """See the module's docstring. ``changes``: from step to step."""

    changes: bool = False

    @abc.abstractmethod
    def remember(self, encoded: Encoded) -> Memory:
        """What is needed of B sources."""

    @abc.abstractmethod
    def first(self, memory: Memory) -> Tensor:
        """What the decoder's first state is made of, (B, H); of the dtype and on the device of the model."""

    @abc.abstractmethod
    def over(self, memory: Memory, layout: Layout | None, rows: int) -> StepContext:
        """The context of one step of so many rows; without ``layout`` every sentence has as many."""

    @abc.abstractmethod
    def over_all(self, memory: Memory) -> LoopContext:
        """The context of a loop over known targets."""


@dataclass(frozen=True)
class EmptyMemory(Memory):
    """The number of sources, B."""

    rows_B: Tensor


class NoContext(Context):
    """A decoder without a source."""

    def remember(self, encoded: Encoded) -> EmptyMemory:
        """How many there are."""
        return EmptyMemory(torch.zeros(len(encoded.mask_BS), device=encoded.mask_BS.device))

    def first(self, memory: Memory) -> Tensor:
        """Nothing, (B, 0)."""
        return memory.example.unsqueeze(1)[:, :0]

    def over(self, memory: Memory, layout: Layout | None, rows: int) -> StepContext:
        """Nothing."""
        return _NoStepContext()

    def over_all(self, memory: Memory) -> LoopContext:
        """Nothing."""
        return _NoLoopContext()


class _NoStepContext(StepContext):
    def attend(self, hidden_NH: Tensor) -> ContextTerms:
        return ContextTerms(None, None, None)


class _NoLoopContext(LoopContext):
    def attend(self, hidden_BH: Tensor) -> None:
        pass

    def gates(self) -> None:
        return None

    def readouts(self) -> None:
        return None


@dataclass(frozen=True)
class Summary(Memory):
    """c, and what it adds to the decoder's gates and to the readout."""

    summary_BH: Tensor
    gates_BG: Tensor
    readout_BX: Tensor


class FixedContext(Context):
    """The source as one vector c: where the encoder ended, or ``summary`` of that (Cho et al. 2014)."""

    def __init__(
        self, gates: GateInputs, readout: nn.Module, *, summary: nn.Module | None = None, dropout: nn.Module
    ) -> None:
        super().__init__()
        self.to_gates, self.to_readout, self.summary, self.dropout = gates, readout, summary, dropout

    def remember(self, encoded: Encoded) -> Summary:
        """h_N, or tanh(V h_N), and its products."""
        last_BH = encoded.ends(0)
        summary_BH = self.dropout(last_BH if self.summary is None else torch.tanh(self.summary(last_BH)))
        return Summary(summary_BH, self.to_gates(summary_BH), self.to_readout(summary_BH))

    def first(self, memory: Memory) -> Tensor:
        """C."""
        assert isinstance(memory, Summary)
        return memory.summary_BH

    def over(self, memory: Memory, layout: Layout | None, rows: int) -> StepContext:
        """The same for every step."""
        assert isinstance(memory, Summary)
        return _FixedStepContext(
            memory.repeat(rows // memory.rows) if layout is None else memory.select(layout.sentences_N)
        )

    def over_all(self, memory: Memory) -> LoopContext:
        """The same for every position."""
        assert isinstance(memory, Summary)
        return _FixedLoopContext(memory)


class _FixedStepContext(StepContext):
    def __init__(self, rows: Summary) -> None:
        self.rows = rows

    def pending_gates(self, gates_NG: Tensor | None) -> Tensor:
        return self.rows.gates_BG

    def attend(self, hidden_NH: Tensor) -> ContextTerms:
        return ContextTerms(self.rows.gates_BG, self.rows.readout_BX, None)


class _FixedLoopContext(LoopContext):
    def __init__(self, memory: Summary) -> None:
        self.memory = memory

    def attend(self, hidden_BH: Tensor) -> None:
        pass

    def gates(self) -> Tensor:
        return self.memory.gates_BG

    def readouts(self) -> Tensor:
        return self.memory.readout_BX.unsqueeze(1)


@dataclass(frozen=True)
class Annotations(Memory):
    """The values that attention sums, its keys, and where the backward encoder ended."""

    values_BSX: Tensor = field(metadata=SOURCE_AXIS)
    keys_BSA: Tensor = field(metadata=SOURCE_AXIS)
    mask_BS: Tensor = field(metadata=SOURCE_AXIS)
    first_BH: Tensor


class ProjectedAnnotations(Annotations):
    """With products of the annotations, side by side, in place of the annotations."""


class AttentiveContext(Context):
    """c_i = the sum of the annotations weighted by ``attention``; what it adds to gates and readout is linear in it.

    In inference the products of the annotations are summed: with more hypotheses than source positions, which search
    and scoring have, this leaves the larger part of the products out.
    """

    changes = True

    def __init__(self, attention: Attention, gates: GateInputs, readout: nn.Linear) -> None:
        super().__init__()
        self.attention, self.to_gates, self.to_readout = attention, gates, readout

    def remember(self, encoded: Encoded) -> Annotations:
        """Values and keys; the last direction of the encoder gives the first state."""
        first_BH = encoded.ends(-1)
        if torch.is_grad_enabled():
            annotations_BSC = encoded.annotations()
            return Annotations(annotations_BSC, self.attention.keys(annotations_BSC), encoded.mask_BS, first_BH)
        both_XC = torch.cat([self.to_gates.weight, self.to_readout.weight])
        values_BSX, keys_BSA = encoded.times(both_XC)[0], keys_of(self.attention, encoded)
        return ProjectedAnnotations(values_BSX, keys_BSA, encoded.mask_BS, first_BH)

    def first(self, memory: Memory) -> Tensor:
        """The end of the backward encoder, which is at the first word (appendix A.2.2)."""
        assert isinstance(memory, Annotations)
        return memory.first_BH

    def over(self, memory: Memory, layout: Layout | None, rows: int) -> StepContext:
        """Attention from N states."""
        assert isinstance(memory, Annotations)
        return _AttentiveStepContext(self, memory, layout)

    def over_all(self, memory: Memory) -> LoopContext:
        """Attention from the states of a loop."""
        assert isinstance(memory, Annotations)
        return _AttentiveLoopContext(self, memory)

    def attention_over(self, memory: Annotations) -> AttentionContext:
        """The attention of one loop."""
        return self.attention.over(memory.values_BSX, memory.keys_BSA, memory.mask_BS)

    def parts(self, context: Tensor, memory: Annotations) -> tuple[Tensor, Tensor]:
        """What sums of values add to the gates and in the readout, (..., X) -> (..., G) and (..., 2L)."""
        if isinstance(memory, ProjectedAnnotations):
            gates, readout = context.split((len(self.to_gates.weight), len(self.to_readout.weight)), dim=-1)
            return self.to_gates.finish(gates), readout
        return self.to_gates(context), self.to_readout(context)


def keys_of(attention: Attention, encoded: Encoded) -> Tensor:
    """The keys of encoded sources, (B, S, A)."""
    weight = attention.key_weight()
    return encoded.annotations() if weight is None else attention.finished(encoded.times(weight)[0])


class _AttentiveStepContext(StepContext):
    def __init__(self, part: AttentiveContext, memory: Annotations, layout: Layout | None) -> None:
        self.part, self.memory, self.layout = part, memory, layout

    def attend(self, hidden_NH: Tensor) -> ContextTerms:
        context_NX, weights_NS = self.part.attention_over(self.memory)(hidden_NH, self.layout)
        return ContextTerms(*self.part.parts(context_NX, self.memory), weights_NS)


class _AttentiveLoopContext(LoopContext):
    """The terms of the readouts are multiplied for all positions at once."""

    def __init__(self, part: AttentiveContext, memory: Annotations) -> None:
        self.part, self.memory = part, memory
        self.attention_context = part.attention_over(memory)
        self.gates_of = shared_matrix(part.to_gates.weight)
        self.contexts: list[Tensor] = []
        self.weights: list[Tensor] = []

    def attend(self, hidden_BH: Tensor) -> None:
        context_BX, weights_BS = self.attention_context(hidden_BH)
        self.contexts.append(context_BX)
        self.weights.append(weights_BS)

    def attention(self) -> Tensor:
        return torch.stack(self.weights, dim=1)

    def gates(self) -> Tensor:
        last_BX, to_gates = self.contexts[-1], self.part.to_gates
        projected = isinstance(self.memory, ProjectedAnnotations)
        return to_gates.finish(last_BX[:, : len(to_gates.weight)] if projected else self.gates_of(last_BX))

    def readouts(self) -> Tensor:
        contexts_BTX = torch.stack(self.contexts, dim=1)
        if isinstance(self.memory, ProjectedAnnotations):
            return contexts_BTX[..., len(self.part.to_gates.weight) :]
        terms_BTX: Tensor = self.part.to_readout(contexts_BTX)
        return terms_BTX
