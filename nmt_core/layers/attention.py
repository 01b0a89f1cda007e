"""The alignment model of Bahdanau et al. 2015.

Shapes: B sentences, K hypotheses of each, N = B * K, S source positions, H hidden units, A units of
the alignment model, C size of an annotation, R rows of a run.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from nmt_core.data.batching import whole_positions
from nmt_core.data.layout import Layout
from nmt_core.layers.shared_product import SharedMatrix, SharedRows


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
        self.blend = SharedRows(annotations_BSC)
        self.precise = torch.promote_types(keys_BSA.dtype, torch.float32)
        self.keys_B1SA = keys_BSA.unsqueeze(1)
        self.padding_B1S = None if all(whole_positions(mask_BS)) else ~mask_BS.unsqueeze(1)

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
        context_BKC = self.blend(weights_BKS)
        return Attended(context_BKC.flatten(0, 1), weights_BKS.flatten(0, 1))

    def _look_by_runs(self, state_NH: Tensor, layout: Layout) -> Attended:
        """The same where sentences have different numbers of states, some rows at a time."""
        query_NA = self.query(state_NH).to(self.precise)
        positions = self.annotations_BSC.shape[1]
        places_NS = layout.sentences_N.unsqueeze(1) * positions + torch.arange(positions, device=state_NH.device)
        context_NC = state_NH.new_empty(state_NH.shape[0], self.annotations_BSC.shape[2])
        weights_NS = query_NA.new_zeros(query_NA.shape[0], positions)
        energy = self.energy.to(self.precise)
        for first, last, sentence, width in layout.runs:
            query_R1A = query_NA[first:last].unsqueeze(1)
            if sentence is None:
                weights_RS = self._weights(query_R1A, energy, places_NS[first:last, :width])
                context_NC[first:last] = self._blend(weights_RS, places_NS[first:last, :width])
            else:
                keys_SA = self.keys_B1SA[sentence, 0, :width].to(self.precise)
                weights_RS = torch.softmax((keys_SA + query_R1A).tanh_() @ energy, dim=1)
                context_NC[first:last] = weights_RS @ self.annotations_BSC[sentence, :width].to(self.precise)
            weights_NS[first:last, :width] = weights_RS
        return Attended(context_NC, weights_NS)

    def _weights(self, query_R1A: Tensor, energy: Tensor, places_RS: Tensor) -> Tensor:
        """Softmax over the positions at ``places_RS`` (counted through all sentences)."""
        keys_RSA = self.keys_B1SA.flatten(0, 2).index_select(0, places_RS.flatten()).view(*places_RS.shape, -1)
        energies_RS = keys_RSA.to(self.precise).add_(query_R1A).tanh_() @ energy
        if self.padding_B1S is not None:
            energies_RS.masked_fill_(self.padding_B1S.flatten()[places_RS], -torch.inf)
        return torch.softmax(energies_RS, dim=1)

    def _blend(self, weights_RS: Tensor, places_RS: Tensor) -> Tensor:
        """Weighted sums of annotations, of which no copies are made."""
        annotations_PC = self.annotations_BSC.flatten(0, 1)
        return F.embedding_bag(
            places_RS, annotations_PC, mode="sum", per_sample_weights=weights_RS.to(annotations_PC.dtype)
        )
