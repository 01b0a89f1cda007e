"""Attention: how much a decoder looks at each position of its source.

An ``Attention`` says of which products of the annotations its keys are made and scores keys against a
query; an ``AttentionContext`` is the attention of one loop over the annotations of B sentences.

Shapes: B sentences, K hypotheses of each, N = B * K, S source positions, H size of a query, A of a key, C
of an annotation, X of what is summed (annotations, or products of them), R rows of a run.
"""

from __future__ import annotations

import abc
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from nmt_core.data.batching import whole_positions
from nmt_core.data.layout import Layout
from nmt_core.layers.initialisation import FirstValues, Linear
from nmt_core.layers.shared_product import SharedMatrix, SharedRows


class Attended(NamedTuple):
    """Where hypotheses look: the sums weighted by their attention, and its weights."""

    context_NX: Tensor
    weights_NS: Tensor


class Attention(nn.Module, abc.ABC):
    """What scores the positions of a source."""

    @abc.abstractmethod
    def key_weight(self) -> Tensor:
        """The matrix (A, C) whose products with the annotations are the keys, once per sentence."""

    @abc.abstractmethod
    def query_weight(self) -> Tensor:
        """The matrix (A, H) whose products with the queries are scored."""

    @abc.abstractmethod
    def energies(self, query: Tensor, keys: Tensor, *, scratch: bool = False) -> Tensor:
        """Scores before the softmax, (..., 1, A) and (..., S, A) -> (..., S); ``scratch``: keys may be overwritten."""

    def keys(self, annotations_BSC: Tensor) -> Tensor:
        """(B, S, A)."""
        return F.linear(annotations_BSC, self.key_weight())

    def over(self, values_BSX: Tensor, keys_BSA: Tensor, mask_BS: Tensor) -> AttentionContext:
        """The attention of one loop; ``values_BSX`` are what is summed."""
        return AttentionContext(self, values_BSX, keys_BSA, mask_BS)


class AdditiveAttention(Attention):
    """e_ij = v . tanh(W_a s_{i-1} + U_a h_j), softmax over j, c_i = sum of a_ij h_j.

    Bahdanau et al. 2015, section 3.1 and appendix A.1.2.
    """

    def __init__(self, hidden: int, annotation: int, alignment: int) -> None:
        super().__init__()
        self.query = Linear(hidden, alignment, bias=False, deviation=0.001)
        self.key = Linear(annotation, alignment, bias=False, deviation=0.001)
        self.energy = nn.Parameter(torch.empty(alignment))

    def initialise(self, values: FirstValues) -> None:
        """0, or in proportion to its size."""
        values.energy(self.energy)

    def key_weight(self) -> Tensor:
        """U_a."""
        return self.key.weight

    def query_weight(self) -> Tensor:
        """W_a."""
        return self.query.weight

    def energies(self, query: Tensor, keys: Tensor, *, scratch: bool = False) -> Tensor:
        """V . tanh(query + key)."""
        summed = keys.add_(query) if scratch else keys + query
        return summed.tanh_() @ self.energy.to(summed.dtype)


class AttentionContext:
    """Attention during one loop."""

    def __init__(self, attention: Attention, values_BSX: Tensor, keys_BSA: Tensor, mask_BS: Tensor) -> None:
        self.attention = attention
        self.query = SharedMatrix(attention.query_weight())
        self.values_BSX = values_BSX
        self.blend = SharedRows(values_BSX)
        self.precise = torch.promote_types(keys_BSA.dtype, torch.float32)
        self.keys_B1SA = keys_BSA.unsqueeze(1)
        self.padding_B1S = None if all(whole_positions(mask_BS)) else ~mask_BS.unsqueeze(1)

    def __call__(self, query_NH: Tensor, layout: Layout | None = None, position: int | None = None) -> Attended:
        """Look from N states at the annotations of their B sentences; without ``layout``, N = B * K.

        ``position`` is that of the target word, where all rows are at one; attention by content needs none.
        """
        if layout is not None:
            return self._look_by_runs(query_NH, layout)
        sentences = self.keys_B1SA.shape[0]
        query_BKA = self.query(query_NH).view(sentences, -1, self.keys_B1SA.shape[3])
        energies_BKS = self.attention.energies(query_BKA.unsqueeze(2), self.keys_B1SA)
        if self.padding_B1S is not None:
            energies_BKS = energies_BKS.masked_fill(self.padding_B1S, -torch.inf)
        weights_BKS = torch.softmax(energies_BKS, dim=2)
        context_BKX = self.blend(weights_BKS)
        return Attended(context_BKX.flatten(0, 1), weights_BKS.flatten(0, 1))

    def _look_by_runs(self, query_NH: Tensor, layout: Layout) -> Attended:
        """The same where sentences have different numbers of states, some rows at a time."""
        query_NA = self.query(query_NH).to(self.precise)
        positions = self.values_BSX.shape[1]
        places_NS = layout.sentences_N.unsqueeze(1) * positions + torch.arange(positions, device=query_NH.device)
        context_NX = query_NH.new_empty(query_NH.shape[0], self.values_BSX.shape[2])
        weights_NS = query_NA.new_zeros(query_NA.shape[0], positions)
        for first, last, sentence, width in layout.runs:
            query_R1A = query_NA[first:last].unsqueeze(1)
            if sentence is None:
                weights_RS = self._weights(query_R1A, places_NS[first:last, :width])
                context_NX[first:last] = self._blend(weights_RS, places_NS[first:last, :width])
            else:
                keys_SA = self.keys_B1SA[sentence, 0, :width].to(self.precise)
                weights_RS = torch.softmax(self.attention.energies(query_R1A, keys_SA), dim=1)
                context_NX[first:last] = weights_RS @ self.values_BSX[sentence, :width].to(self.precise)
            weights_NS[first:last, :width] = weights_RS
        return Attended(context_NX, weights_NS)

    def _weights(self, query_R1A: Tensor, places_RS: Tensor) -> Tensor:
        """Softmax over the positions at ``places_RS`` (counted through all sentences)."""
        keys_RSA = self.keys_B1SA.flatten(0, 2).index_select(0, places_RS.flatten()).view(*places_RS.shape, -1)
        energies_RS = self.attention.energies(query_R1A, keys_RSA.to(self.precise), scratch=True)
        if self.padding_B1S is not None:
            energies_RS.masked_fill_(self.padding_B1S.flatten()[places_RS], -torch.inf)
        return torch.softmax(energies_RS, dim=1)

    def _blend(self, weights_RS: Tensor, places_RS: Tensor) -> Tensor:
        """Weighted sums of values, of which no copies are made."""
        values_PX = self.values_BSX.flatten(0, 1)
        return F.embedding_bag(places_RS, values_PX, mode="sum", per_sample_weights=weights_RS.to(values_PX.dtype))
