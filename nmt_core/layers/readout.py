"""From decoder state, word before and context to what the generator reads."""

from __future__ import annotations

import abc

import torch
from torch import Tensor, nn

from nmt_core.layers.products import Linear
from nmt_core.native import kernels


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
