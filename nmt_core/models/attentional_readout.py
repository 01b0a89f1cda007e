"""The attentional vector of Luong et al. 2015 (section 3): what is generated from, and may be fed to the next step.

Shapes: as in ``nmt_core.layers.attention``; T target positions.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import torch
from torch import Tensor, nn

from nmt_core.batches.layout import Layout
from nmt_core.layers.attention import AdditiveAttention, Attention, AttentionContext
from nmt_core.layers.initialisation import Linear
from nmt_core.layers.luong_attention import (
    LocationAttention,
    LocationContext,
    MonotonicWindow,
    PredictiveWindow,
    Window,
)
from nmt_core.layers.reader import Encoded
from nmt_core.layers.shared_product import SharedMatrix
from nmt_core.models.attentive_context import keys_of
from nmt_core.models.rows import SOURCE_AXIS, Memory

_LEAST = 1e-30


@dataclass(frozen=True)
class SourceMemory(Memory):
    """The decoder's first states, all layers side by side, and for attention what it sums, its keys, and the words."""

    states_BU: Tensor
    values_BSH: Tensor | None = field(default=None, metadata=SOURCE_AXIS)
    keys_BSA: Tensor | None = field(default=None, metadata=SOURCE_AXIS)
    mask_BS: Tensor | None = field(default=None, metadata=SOURCE_AXIS)


class Attentional(NamedTuple):
    """The attentional vector, and where it comes from: weights that sum to 1."""

    readout_NH: Tensor
    weights_NS: Tensor


class AttentionalReadout(nn.Module):
    """h~ = tanh(W_c [c; h]), equation 5, where c is the sum of the annotations weighted by attention from h.

    ``score`` says how they are scored, ``window`` which of them (None: all). The annotations are multiplied by their
    half of W_c before they are summed.
    """

    def __init__(self, hidden: int, score: Attention | LocationAttention, window: Window | None) -> None:
        super().__init__()
        self.score, self.window = score, window
        self.context = Linear(hidden, hidden, bias=False)
        self.state = Linear(hidden, hidden, bias=False)

    @property
    def counts_places(self) -> bool:
        """Whether it needs the target position."""
        return isinstance(self.window, MonotonicWindow)

    def remember(self, encoded: Encoded, states_BU: Tensor) -> SourceMemory:
        """What is needed of B sources."""
        (values_BSH,) = encoded.times(self.context.weight)
        keys_BSA = keys_of(self.score, encoded) if isinstance(self.score, Attention) else None
        return SourceMemory(states_BU, values_BSH, keys_BSA, encoded.mask_BS)

    def over(self, memory: SourceMemory) -> AttentionalLoop:
        """The attentional vectors of one loop."""
        return AttentionalLoop(self, memory)


class AttentionalLoop:
    """``AttentionalReadout`` during one loop."""

    def __init__(self, part: AttentionalReadout, memory: SourceMemory) -> None:
        assert memory.values_BSH is not None and memory.mask_BS is not None
        self.part, self.words_B = part, memory.mask_BS.sum(dim=1)
        self.product = SharedMatrix(part.state.weight)
        self.focusing = None if part.window is None else part.window.focusing()
        self.attend: AttentionContext | LocationContext
        if isinstance(part.score, LocationAttention):
            self.attend = part.score.over(memory.values_BSH, memory.mask_BS)
        else:
            assert memory.keys_BSA is not None
            self.attend = part.score.over(memory.values_BSH, memory.keys_BSA, memory.mask_BS)

    def __call__(self, hidden_NH: Tensor, place_N: Tensor | None, layout: Layout | None = None) -> Attentional:
        """From N states at target positions ``place_N``; without ``layout``, N = B * K."""
        focus = None
        if self.focusing is not None:
            focus = self.focusing(hidden_NH, self._words(len(hidden_NH), layout), place_N)
        context_NH, weights_NS = self.attend(hidden_NH, layout, focus)
        product_NH = self.product(hidden_NH)
        return Attentional(torch.tanh(product_NH + context_NH.to(product_NH.dtype)), self._shares(weights_NS))

    def all_positions(self, hidden_BTH: Tensor) -> Attentional:
        """From the states of known targets: (B, T, H) and (B, T, S)."""
        sentences, positions = hidden_BTH.shape[:2]
        # the scores of concat are made of a sum for every pair of positions
        at_a_time = 1 if isinstance(self.part.score, AdditiveAttention) else positions
        readouts, weights = [], []
        for part_BTH, places_T in zip(
            hidden_BTH.split(at_a_time, dim=1),
            torch.arange(positions, device=hidden_BTH.device).split(at_a_time),
            strict=True,
        ):
            readout_NH, weights_NS = self(part_BTH.flatten(0, 1), places_T.repeat(sentences))
            readouts.append(readout_NH.view(sentences, len(places_T), -1))
            weights.append(weights_NS.view(sentences, len(places_T), -1))
        return Attentional(torch.cat(readouts, dim=1), torch.cat(weights, dim=1))

    def _words(self, rows: int, layout: Layout | None) -> Tensor:
        if layout is None:
            return self.words_B.repeat_interleave(rows // len(self.words_B))
        return self.words_B[layout.sentences_N]

    def _shares(self, weights_NS: Tensor) -> Tensor:
        """Weights that do not sum to 1 are given as shares."""
        if isinstance(self.part.score, LocationAttention) or isinstance(self.part.window, PredictiveWindow):
            return weights_NS / weights_NS.sum(dim=1, keepdim=True).clamp(min=_LEAST)
        return weights_NS
