"""What the source adds to a decoder, step by step.

A ``Context`` keeps in its memory what it needs of an encoded source, and has two terms for every step: one is
added to the gates of the decoder's cell, the other in the readout. Both are linear in the context vector: a fixed
vector (``fixed_context``) is multiplied once per sentence, and with attention (``attentive_context``) the annotations
themselves are multiplied, for inference, since a weighted sum of products is the product of the weighted sum.

Shapes: B sentences, S positions, N rows, T target positions, C annotation, G gates, X what the readout adds.
"""

from __future__ import annotations

import abc
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor, nn

from nmt_core.batches.layout import Layout
from nmt_core.layers.reader import Encoded
from nmt_core.models.rows import Memory


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
