"""The source as a sum of its annotations weighted by attention, another at every step (Bahdanau et al. 2015).

Shapes: as in ``nmt_core.models.context``; A key.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import torch
from torch import Tensor, nn

from nmt_core.batches.layout import Layout
from nmt_core.layers.attention import Attention, AttentionContext
from nmt_core.layers.cells import GateInputs
from nmt_core.layers.reader import Encoded
from nmt_core.layers.shared_product import SharedMatrix
from nmt_core.models.context import Context, ContextTerms, LoopContext, StepContext
from nmt_core.models.rows import SOURCE_AXIS, Memory


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
        self.gates_of = SharedMatrix(part.to_gates.weight)
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
