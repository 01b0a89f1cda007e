"""The alignment model of Bahdanau et al. 2015.

Shapes: B sentences, K hypotheses of each, N = B * K, S source positions, H hidden units, A units of
the alignment model, C size of an annotation, R rows of a run.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor, nn

from nmt_core.data.layout import Layout
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
        self.keys_BSA = keys_BSA
        self.keys_B1SA = keys_BSA.unsqueeze(1)
        self.padding_B1S = None if bool(mask_BS.all()) else ~mask_BS.unsqueeze(1)

    def __call__(self, state_NH: Tensor, layout: Layout | None = None) -> Attended:
        """Look from N states at the annotations of their B sentences; without ``layout``, N = B * K."""
        if layout is not None:
            return self._look_by_runs(state_NH, layout)
        sentences = self.keys_B1SA.shape[0]
        query_BKA = self.query(state_NH).view(sentences, -1, self.keys_B1SA.shape[3])
        energies_BKS = torch.tanh(query_BKA.unsqueeze(2) + self.keys_B1SA) @ self.energy
        if self.padding_B1S is not None:
            energies_BKS = energies_BKS.masked_fill(self.padding_B1S, -torch.inf)
        weights_BKS = torch.softmax(energies_BKS, dim=2)
        context_BKC = torch.bmm(weights_BKS, self.annotations_BSC)
        return Attended(context_BKC.flatten(0, 1), weights_BKS.flatten(0, 1))

    def _look_by_runs(self, state_NH: Tensor, layout: Layout) -> Attended:
        """The same where sentences have different numbers of states, some rows at a time."""
        query_NA = self.query(state_NH)
        positions = self.annotations_BSC.shape[1]
        context_NC = query_NA.new_empty(query_NA.shape[0], self.annotations_BSC.shape[2])
        weights_NS = query_NA.new_zeros(query_NA.shape[0], positions)
        places_1S = torch.arange(positions, device=query_NA.device).unsqueeze(0)
        begins_N1 = (layout.sentences_N * positions).unsqueeze(1)
        keys_PA, annotations_PC = self.keys_BSA.flatten(0, 1), self.annotations_BSC.flatten(0, 1)
        padding_P = None if self.padding_B1S is None else self.padding_B1S.flatten()
        for first, last, sentence, width in layout.runs:
            query_R1A = query_NA[first:last].unsqueeze(1)
            if sentence is None:
                places_X = (begins_N1[first:last] + places_1S[:, :width]).flatten()
                keys_RSA = keys_PA.index_select(0, places_X).view(-1, width, keys_PA.shape[1])
                padding_RS = None if padding_P is None else padding_P[places_X].view(-1, width)
                weights_RS = self._weights(keys_RSA.add_(query_R1A), padding_RS)
                annotations_RSC = annotations_PC.index_select(0, places_X).view(-1, width, annotations_PC.shape[1])
                context_NC[first:last] = torch.bmm(weights_RS.unsqueeze(1), annotations_RSC).squeeze(1)
            else:
                weights_RS = self._weights(self.keys_BSA[sentence, :width].unsqueeze(0) + query_R1A, None)
                # in float32: for small products of ever new shapes, bfloat16 takes longer to begin than to work
                context_NC[first:last] = weights_RS.float() @ self.annotations_BSC[sentence, :width].float()
            weights_NS[first:last, :width] = weights_RS
        return Attended(context_NC, weights_NS)

    def _weights(self, sums_RSA: Tensor, padding_RS: Tensor | None) -> Tensor:
        energies_RS = sums_RSA.tanh_() @ self.energy
        if padding_RS is not None:
            energies_RS.masked_fill_(padding_RS, -torch.inf)
        return torch.softmax(energies_RS, dim=1)
