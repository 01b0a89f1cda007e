"""What attention of Luong et al. 2015 has beside scores of content: scores of places, and windows.

Shapes: as in ``nmt_core.layers.attention``; P places that have scores.
"""

from __future__ import annotations

import abc
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from nmt_core.batches.layout import Layout
from nmt_core.layers.attention import Attended, Focus
from nmt_core.layers.initialisation import Initialiser, Linear
from nmt_core.layers.shared_product import SharedMatrix, SharedRows


class LocationAttention(nn.Module):
    """a = softmax(W_a h) over P places, of which the first S are used as they are: a source's words from P on get 0.

    ``location``, Luong et al. 2015, equation 8: "for short sentences, we only use the top part of a_t". What is
    used does not sum to 1.
    """

    def __init__(self, hidden: int, places: int) -> None:
        super().__init__()
        self.energies = Linear(hidden, places, bias=False)

    def over(self, values_BSX: Tensor, mask_BS: Tensor) -> LocationContext:
        """The attention of one loop."""
        return LocationContext(self, values_BSX, mask_BS)


class LocationContext:
    """``LocationAttention`` during one loop."""

    def __init__(self, attention: LocationAttention, values_BSX: Tensor, mask_BS: Tensor) -> None:
        self.energies, self.mask_BS, self.values_BSX = SharedMatrix(attention.energies.weight), mask_BS, values_BSX
        self.blend = SharedRows(values_BSX)

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
        weights_NS = weights_NS * self.mask_BS[layout.sentences_N]
        values_PX = self.values_BSX.flatten(0, 1)
        places_NS = layout.sentences_N.unsqueeze(1) * positions + torch.arange(positions, device=query_NH.device)
        weights_NS = weights_NS.to(values_PX.dtype)
        context_NX = F.embedding_bag(places_NS, values_PX, mode="sum", per_sample_weights=weights_NS)
        return Attended(context_NX, weights_NS)


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


class PredictiveWindow(Window):
    """p_t = S sigmoid(v . tanh(W h)), around which a Gaussian prefers what is near (``local-p``, equations 9, 10)."""

    def __init__(self, hidden: int, radius: int) -> None:
        super().__init__(radius)
        self.position = Linear(hidden, hidden, bias=False)
        self.energy = nn.Parameter(torch.empty(hidden))

    def initialise(self, initialiser: Initialiser) -> None:
        """As those of attention."""
        initialiser.energy(self.energy)

    def focusing(self) -> Focusing:
        """The foci of states."""
        position = SharedMatrix(self.position.weight)

        def focus(hidden_NH: Tensor, words_N: Tensor, place_N: Tensor | None) -> Focus:
            hidden_NH = torch.tanh(position(hidden_NH))
            precise = torch.promote_types(hidden_NH.dtype, torch.float32)
            with torch.autocast(hidden_NH.device.type, enabled=False):  # which rounds places of long sentences
                point_N = words_N * torch.sigmoid(hidden_NH.to(precise) @ self.energy.to(precise))
            centre_N = torch.minimum(point_N.detach().floor().long(), words_N - 1)
            return Focus(centre_N, self.radius, point_N)

        return focus
