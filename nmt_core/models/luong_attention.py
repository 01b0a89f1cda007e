"""Attention of Luong et al. 2015, section 3: scores of places, windows, and the attentional vector.

The scores of content (``dot``, ``general``, ``concat``) are in ``nmt_core.layers.attention``. The attentional vector is
what is generated from, and may be fed to the next step.

Shapes: as in ``nmt_core.layers.attention``; P places that have scores, T target positions.
"""

from __future__ import annotations

import abc
from collections.abc import Callable
from dataclasses import dataclass, field

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from nmt_core.batches.layout import Layout
from nmt_core.batches.tensor_tree import SOURCE_AXIS, Memory
from nmt_core.layers.attention import (
    AdditiveAttention,
    Attended,
    Attention,
    AttentionLoop,
    Focus,
    sum_values,
)
from nmt_core.layers.init import Initialiser, Layer
from nmt_core.layers.products import Linear, Product, SharedProduct, shared_matrix
from nmt_core.layers.reader import Encoded


class DotAttention(Attention):
    """e_ij = h_i . h_j (``dot``, section 3.1)."""

    def keys(self, encoded: Encoded) -> Tensor:
        """The annotations."""
        return encoded.annotations()

    def queries(self) -> Product:
        """The states themselves."""
        return lambda query_NH: query_NH

    def energies(self, query_BKA: Tensor, keys_BSA: Tensor, *, scratch: bool = False) -> Tensor:
        """Query . key."""
        return query_BKA.to(keys_BSA.dtype) @ keys_BSA.mT

    def energies_in(self, keys_BSA: Tensor) -> Product:
        """The gradient of the keys is taken once."""
        return SharedProduct(keys_BSA.mT)


class GeneralAttention(DotAttention):
    """e_ij = h_i . W_a h_j (``general``, section 3.1)."""

    def __init__(self, hidden: int, annotation: int) -> None:
        super().__init__()
        self.key = Linear(annotation, hidden, biases=0)

    def keys(self, encoded: Encoded) -> Tensor:
        """W_a h."""
        return encoded.times(self.key.weight)


class LocationAttention(nn.Module):
    """a = softmax(W_a h) over P places, of which the first S are used as they are: a source's words from P on get 0.

    ``location``, equation 8: "for short sentences, we only use the top part of a_t". What is used does not sum to 1.
    """

    def __init__(self, hidden: int, places: int) -> None:
        super().__init__()
        self.energies = Linear(hidden, places, biases=0)


class LocationLoop:
    """``LocationAttention`` during one loop."""

    def __init__(self, attention: LocationAttention, values_BSX: Tensor, words_B: Tensor) -> None:
        self.energies, self.values_BSX = shared_matrix(attention.energies.weight), values_BSX
        self.blend = SharedProduct(values_BSX)
        positions_S = torch.arange(values_BSX.shape[1], device=words_B.device)
        self.mask_BS = positions_S < words_B.unsqueeze(1)

    def __call__(self, query_NH: Tensor, layout: Layout | None = None, focus: Focus | None = None) -> Attended:
        """Attend from N states; without ``layout``, N = B * K."""
        energies_NP = self.energies(query_NH)
        precise = torch.promote_types(energies_NP.dtype, torch.float32)
        sentences, positions = self.mask_BS.shape
        weights_NP = torch.softmax(energies_NP.to(precise), dim=1)
        weights_NS = F.pad(weights_NP[:, :positions], (0, max(positions - weights_NP.shape[1], 0)))
        if layout is None:
            weights_BKS = weights_NS.view(sentences, -1, positions) * self.mask_BS.unsqueeze(1)
            return Attended(self.blend(weights_BKS).flatten(0, 1), weights_BKS.flatten(0, 1))
        weights_NS = (weights_NS * self.mask_BS[layout.sentences_N]).to(self.values_BSX.dtype)
        return Attended(sum_values(self.values_BSX, layout.sentences_N, weights_NS), weights_NS)


Focusing = Callable[[Tensor, Tensor, Tensor | None], Focus]
"""(states (N, H), source words of their sentences (N,), target positions (N,) or None) -> their foci."""


class Window(nn.Module, abc.ABC):
    """The part of the source around an aligned position p_t, ``radius`` positions to either side."""

    def __init__(self, radius: int) -> None:
        super().__init__()
        self.radius = radius

    @abc.abstractmethod
    def focusing(self) -> Focusing:
        """The foci of the states of one loop."""


class MonotonicWindow(Window):
    """p_t = t, or the last word (``local-m``, section 3.2)."""

    def focusing(self) -> Focusing:
        """The focus of a row is its target position."""

        def focus(hidden_NH: Tensor, words_N: Tensor, place_N: Tensor | None) -> Focus:
            assert place_N is not None
            return Focus(torch.minimum(place_N, words_N - 1), self.radius)

        return focus


class PredictiveWindow(Window, Layer):
    """p_t = S sigmoid(v . tanh(W h)), around which a Gaussian prefers what is near (``local-p``, equations 9, 10)."""

    def __init__(self, hidden: int, radius: int) -> None:
        super().__init__(radius)
        self.position = Linear(hidden, hidden, biases=0)
        self.energy = nn.Parameter(torch.empty(hidden))

    def initialise(self, initialiser: Initialiser) -> None:
        """As those of attention."""
        initialiser.energy(self.energy)

    def focusing(self) -> Focusing:
        """The foci of states."""
        position = shared_matrix(self.position.weight)

        def focus(hidden_NH: Tensor, words_N: Tensor, place_N: Tensor | None) -> Focus:
            hidden_NH = torch.tanh(position(hidden_NH))
            precise = torch.promote_types(hidden_NH.dtype, torch.float32)
            with torch.autocast(hidden_NH.device.type, enabled=False):  # which rounds places of long sentences
                point_N = words_N * torch.sigmoid(hidden_NH.to(precise) @ self.energy.to(precise))
            centre_N = torch.minimum(point_N.detach().floor().long(), words_N - 1)
            return Focus(centre_N, self.radius, point_N)

        return focus


_LEAST = 1e-30


@dataclass(frozen=True)
class SourceMemory(Memory):
    """The decoder's first states, all layers side by side, and for attention what it sums, its keys, and the words."""

    states_BU: Tensor
    values_BSH: Tensor | None = field(default=None, metadata=SOURCE_AXIS)
    keys_BSA: Tensor | None = field(default=None, metadata=SOURCE_AXIS)
    words_B: Tensor | None = None


class AttentionalReadout(nn.Module):
    """h~ = tanh(W_c [c; h]), equation 5, where c is the sum of the annotations weighted by attention from h.

    ``score`` says how they are scored, ``window`` which of them (None: all). The annotations are multiplied by their
    half of W_c before they are summed.
    """

    def __init__(self, hidden: int, score: Attention | LocationAttention, window: Window | None) -> None:
        super().__init__()
        self.score, self.window = score, window
        self.context = Linear(hidden, hidden, biases=0)
        self.state = Linear(hidden, hidden, biases=0)

    @property
    def counts_places(self) -> bool:
        """Whether it needs the target position."""
        return isinstance(self.window, MonotonicWindow)

    def remember(self, encoded: Encoded, states_BU: Tensor) -> SourceMemory:
        """What is needed of B sources."""
        values_BSH = encoded.times(self.context.weight)
        keys_BSA = self.score.keys(encoded) if isinstance(self.score, Attention) else None
        return SourceMemory(states_BU, values_BSH, keys_BSA, encoded.mask_BS.sum(dim=1))


class AttentionalLoop:
    """``AttentionalReadout`` during one loop: attentional vectors, and where they come from, weights that sum to 1."""

    def __init__(self, part: AttentionalReadout, memory: SourceMemory) -> None:
        assert memory.values_BSH is not None and memory.words_B is not None
        self.part, self.words_B = part, memory.words_B
        self.product = shared_matrix(part.state.weight)
        self.focusing = None if part.window is None else part.window.focusing()
        self.attend: AttentionLoop | LocationLoop
        if isinstance(part.score, LocationAttention):
            self.attend = LocationLoop(part.score, memory.values_BSH, memory.words_B)
        else:
            assert memory.keys_BSA is not None
            self.attend = AttentionLoop(part.score, memory.values_BSH, memory.keys_BSA, memory.words_B)

    def __call__(
        self, hidden_NH: Tensor, place_N: Tensor | None, layout: Layout | None = None
    ) -> tuple[Tensor, Tensor]:
        """The vectors (N, H) of states at positions ``place_N``, and their weights; without ``layout``, N = B * K."""
        focus = None
        if self.focusing is not None:
            focus = self.focusing(hidden_NH, self._words(len(hidden_NH), layout), place_N)
        context_NH, weights_NS = self.attend(hidden_NH, layout, focus)
        product_NH = self.product(hidden_NH)
        return torch.tanh(product_NH + context_NH.to(product_NH.dtype)), self._shares(weights_NS)

    def all_positions(self, hidden_BTH: Tensor) -> tuple[Tensor, Tensor]:
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
        return torch.cat(readouts, dim=1), torch.cat(weights, dim=1)

    def _words(self, rows: int, layout: Layout | None) -> Tensor:
        if layout is None:
            return self.words_B.repeat_interleave(rows // len(self.words_B))
        return self.words_B[layout.sentences_N]

    def _shares(self, weights_NS: Tensor) -> Tensor:
        """Weights that do not sum to 1 are given as shares."""
        if isinstance(self.part.score, LocationAttention) or isinstance(self.part.window, PredictiveWindow):
            return weights_NS / weights_NS.sum(dim=1, keepdim=True).clamp(min=_LEAST)
        return weights_NS
