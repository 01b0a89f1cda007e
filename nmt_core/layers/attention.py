"""The alignment model of Bahdanau et al. 2015.

Shapes: B sentences, K hypotheses of each, N = B * K, S source positions, H hidden units, A units of
the alignment model, C size of an annotation.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor, nn

from nmt_core.layers.shared_product import SharedMatrix


class Attended(NamedTuple):
    """Where a hypothesis looks: the weighted annotations and their weights."""

    context_NC: Tensor
    weights_NS: Tensor


class AdditiveAttention(nn.Module):
    """e_ij = v . tanh(W_a s_{i-1} + U_a h_j), softmax over j, c_i = sum of a_ij h_j (section 3.1, appendix A.1.2)."""

    def __init__(self, hidden: int, annotation: int, alignment: int) -> None:
        super().__init__()
        self.query = nn.Linear(hidden, alignment, bias=False)
        self.key = nn.Linear(annotation, alignment, bias=False)
        self.energy = nn.Parameter(torch.empty(alignment))

    def keys(self, annotations_BSC: Tensor) -> Tensor:
        """U_a h_j, (B, S, A): computed once per sentence."""
        keys_BSA: Tensor = self.key(annotations_BSC)
        return keys_BSA

    def look(self, annotations_BSC: Tensor, keys_BSA: Tensor, mask_BS: Tensor) -> Look:
        """The attention of one loop over the annotations of B sentences."""
        return Look(SharedMatrix(self.query.weight), self.energy, annotations_BSC, keys_BSA, mask_BS)


class Look:
    """``AdditiveAttention`` during one loop."""

    def __init__(
        self, query: SharedMatrix, energy: Tensor, annotations_BSC: Tensor, keys_BSA: Tensor, mask_BS: Tensor
    ) -> None:
        self.query = query
        self.energy = energy
        self.annotations_BSC = annotations_BSC
        self.keys_B1SA = keys_BSA.unsqueeze(1)
        self.padding_B1S = None if bool(mask_BS.all()) else ~mask_BS.unsqueeze(1)

    def __call__(self, state_NH: Tensor) -> Attended:
        """Look from N = B * K states at the annotations of their B sentences."""
        sentences = self.keys_B1SA.shape[0]
        query_BKA = self.query(state_NH).view(sentences, -1, self.keys_B1SA.shape[3])
        energies_BKS = torch.tanh(query_BKA.unsqueeze(2) + self.keys_B1SA) @ self.energy
        if self.padding_B1S is not None:
            energies_BKS = energies_BKS.masked_fill(self.padding_B1S, -torch.inf)
        weights_BKS = torch.softmax(energies_BKS, dim=2)
        context_BKC = torch.bmm(weights_BKS, self.annotations_BSC)
        return Attended(context_BKC.flatten(0, 1), weights_BKS.flatten(0, 1))
