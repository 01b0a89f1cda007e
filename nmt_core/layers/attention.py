"""Attention: the weight of each position of a source for a decoder.

An ``Attention`` says of which products of the annotations its keys are made and scores keys against a
query; an ``AttentionContext`` is the attention of one loop over the annotations of B sentences; a ``Focus``
limits it to a part of every source (Luong et al. 2015, section 3.2).

Shapes (see ``nmt_core.layers``): B sentences, K hypotheses of each, N = B * K, S source positions, H size of a query,
A of a key, C of an annotation, X of what is summed (annotations, or products of them), R rows of a run.
"""

from __future__ import annotations

import abc
from collections.abc import Callable
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from nmt_core.base.pauses import yield_point
from nmt_core.batches.layout import Layout
from nmt_core.batches.padding import whole_positions
from nmt_core.layers.init import Initialiser, Layer, Linear
from nmt_core.layers.products import Product, SharedProduct, shared_matrix
from nmt_core.native import kernels

Energies = Callable[[Tensor], Tensor]
"""(queries (B, K, A)) -> scores before the softmax (B, K, S), of the keys of one loop."""


class Attended(NamedTuple):
    """The attention of hypotheses: the sums of what is attended to, and the weights."""

    context_NX: Tensor
    weights_NS: Tensor


class Focus(NamedTuple):
    """The part of its source that each row attends to: the positions s with abs(s - centre) <= radius.

    Where there is a ``point``, weights are multiplied by exp(-(s - point)^2 / (2 (radius / 2)^2)) and do not sum to 1
    (Luong et al. 2015, equation 10).
    """

    centre_N: Tensor
    radius: int
    point_N: Tensor | None = None

    def rows(self, first: int, last: int) -> Focus:
        """Some of the rows."""
        point_N = None if self.point_N is None else self.point_N[first:last]
        return Focus(self.centre_N[first:last], self.radius, point_N)

    def weights(self, energies_NS: Tensor) -> Tensor:
        """Attention from scores, (N, S) -> (N, S)."""
        positions_S = torch.arange(energies_NS.shape[1], device=energies_NS.device)
        outside_NS = (positions_S - self.centre_N.unsqueeze(1)).abs() > self.radius
        weights_NS = torch.softmax(energies_NS.masked_fill(outside_NS, -torch.inf), dim=1)
        if self.point_N is None:
            return weights_NS
        distance_NS = positions_S - self.point_N.unsqueeze(1)
        return weights_NS * torch.exp(-2.0 * (distance_NS / self.radius).square())


class Attention(nn.Module, abc.ABC):
    """What scores the positions of a source."""

    @abc.abstractmethod
    def key_weight(self) -> Tensor | None:
        """The matrix (A, C) whose products with the annotations are the keys, once per sentence; None: these are."""

    @abc.abstractmethod
    def queries(self) -> Product:
        """What is made of states before they are scored, (N, H) -> (N, A), for one loop."""

    @abc.abstractmethod
    def energies(self, query_BKA: Tensor, keys_BSA: Tensor, *, scratch: bool = False) -> Tensor:
        """Scores before the softmax, (B, K, S); ``scratch``: keys may be overwritten."""

    def energy_vector(self) -> Tensor | None:
        """The vector v (A,) where scores are v . tanh(query + key), for which there are kernels; else None."""
        return None

    def energies_in(self, keys_BSA: Tensor) -> Energies:
        """``energies`` of the same keys at every step of a loop."""
        return lambda query_BKA: self.energies(query_BKA, keys_BSA)

    def finished(self, product_BSA: Tensor) -> Tensor:
        """The keys, of the products of the annotations with ``key_weight``: these, unless an attention does more."""
        return product_BSA

    def keys(self, annotations_BSC: Tensor) -> Tensor:
        """(B, S, A)."""
        weight = self.key_weight()
        return annotations_BSC if weight is None else self.finished(F.linear(annotations_BSC, weight))

    def over(self, values_BSX: Tensor, keys_BSA: Tensor, mask_BS: Tensor) -> AttentionContext:
        """The attention of one loop; ``values_BSX`` are what is summed."""
        return AttentionContext(self, values_BSX, keys_BSA, mask_BS)


class AdditiveAttention(Attention, Layer):
    """e_ij = v . tanh(W_a s_{i-1} + U_a h_j), softmax over j, c_i = sum of a_ij h_j.

    Bahdanau et al. 2015, section 3.1 and appendix A.1.2. With W = [W_a; U_a] it is the score ``concat`` of Luong et
    al. 2015, section 3.1.
    """

    def __init__(self, hidden: int, annotation: int, alignment: int) -> None:
        super().__init__()
        self.query = Linear(hidden, alignment, bias=False, deviation=0.001)
        self.key = Linear(annotation, alignment, bias=False, deviation=0.001)
        self.energy = nn.Parameter(torch.empty(alignment))

    def initialise(self, initialiser: Initialiser) -> None:
        """0, or in proportion to its size."""
        initialiser.energy(self.energy)

    def key_weight(self) -> Tensor:
        """U_a."""
        return self.key.weight

    def queries(self) -> Product:
        """W_a s."""
        return shared_matrix(self.query.weight)

    def energy_vector(self) -> Tensor:
        """V."""
        return self.energy

    def energies(self, query_BKA: Tensor, keys_BSA: Tensor, *, scratch: bool = False) -> Tensor:
        """V . tanh(query + key)."""
        if scratch and query_BKA.shape[1] == 1:
            summed = keys_BSA.add_(query_BKA).unsqueeze(1)
        else:
            summed = keys_BSA.unsqueeze(1) + query_BKA.unsqueeze(2)
        return summed.tanh_() @ self.energy.to(summed.dtype)


class DotAttention(Attention):
    """e_ij = h_i . h_j (``dot``), Luong et al. 2015, section 3.1."""

    def key_weight(self) -> Tensor | None:
        """None: the keys are the annotations."""
        return None

    def queries(self) -> Product:
        """The states themselves."""
        return lambda query_NH: query_NH

    def energies(self, query_BKA: Tensor, keys_BSA: Tensor, *, scratch: bool = False) -> Tensor:
        """Query . key."""
        return query_BKA.to(keys_BSA.dtype) @ keys_BSA.mT

    def energies_in(self, keys_BSA: Tensor) -> Energies:
        """The gradient of the keys is taken once."""
        return SharedProduct(keys_BSA.mT)


class GeneralAttention(DotAttention):
    """e_ij = h_i . W_a h_j (``general``), Luong et al. 2015, section 3.1."""

    def __init__(self, hidden: int, annotation: int) -> None:
        super().__init__()
        self.key = Linear(annotation, hidden, bias=False)

    def key_weight(self) -> Tensor:
        """W_a."""
        return self.key.weight


class AttentionContext:
    """Attention during one loop."""

    def __init__(self, attention: Attention, values_BSX: Tensor, keys_BSA: Tensor, mask_BS: Tensor) -> None:
        self.attention = attention
        self.query = attention.queries()
        self.energies_of = attention.energies_in(keys_BSA)
        self.values_BSX, self.keys_BSA = values_BSX, keys_BSA
        self.blend = SharedProduct(values_BSX)
        self.precise = torch.promote_types(keys_BSA.dtype, torch.float32)
        self.padding_BS = None if all(whole_positions(mask_BS)) else ~mask_BS

    def __call__(self, query_NH: Tensor, layout: Layout | None = None, focus: Focus | None = None) -> Attended:
        """Attend from N states to the annotations of their B sentences; without ``layout``, N = B * K."""
        energy_A = None if focus is not None else self.attention.energy_vector()
        if energy_A is not None and kernels.apply_to(query_NH, self.keys_BSA, self.values_BSX, energy_A):
            return self._attend_with_kernels(query_NH, layout, energy_A)
        if layout is not None:
            return self._attend_by_runs(query_NH, layout, focus)
        sentences = len(self.keys_BSA)
        energies_BKS = self.energies_of(self.query(query_NH).view(sentences, -1, self.keys_BSA.shape[2]))
        if self.padding_BS is not None:
            energies_BKS = energies_BKS.masked_fill(self.padding_BS.unsqueeze(1), -torch.inf)
        weights_NS = _weights(energies_BKS.flatten(0, 1), focus)
        context_BKX = self.blend(weights_NS.view(energies_BKS.shape))
        return Attended(context_BKX.flatten(0, 1), weights_NS)

    def _attend_with_kernels(self, query_NH: Tensor, layout: Layout | None, energy_A: Tensor) -> Attended:
        """The same of additive attention, compiled; weights are in float32 where there is a layout, as without it."""
        sentences, positions = self.keys_BSA.shape[:2]
        if self.padding_BS is None:
            widths_B = torch.full((sentences,), positions)
        else:
            widths_B = positions - self.padding_BS.sum(dim=1)
        if layout is None:
            sentences_N = torch.arange(sentences).repeat_interleave(query_NH.shape[0] // sentences)
        else:
            sentences_N = layout.sentences_N
        query_NA = self.query(query_NH)
        context_NX, weights_NS = kernels.attend(
            query_NA, self.keys_BSA, self.values_BSX, energy_A, sentences_N, widths_B
        )
        return Attended(context_NX, weights_NS.to(query_NH.dtype) if layout is None else weights_NS)

    def _attend_by_runs(self, query_NH: Tensor, layout: Layout, focus: Focus | None) -> Attended:
        """The same where sentences have different numbers of states, some rows at a time."""
        query_NA = self.query(query_NH).to(self.precise)
        positions = self.values_BSX.shape[1]
        places_NS = layout.sentences_N.unsqueeze(1) * positions + torch.arange(positions, device=query_NH.device)
        context_NX = query_NH.new_empty(query_NH.shape[0], self.values_BSX.shape[2])
        weights_NS = query_NA.new_zeros(query_NA.shape[0], positions)
        for first, last, sentence, width in layout.runs:
            yield_point()
            query_RA, places_RS = query_NA[first:last], places_NS[first:last, :width]
            if sentence is None:
                energies_RS = self._energies(query_RA, places_RS)
            else:
                energies_RS = self._energies_of(sentence, query_RA, width)
            weights_RS = _weights(energies_RS, None if focus is None else focus.rows(first, last))
            if sentence is None:
                context_NX[first:last] = self.sums(weights_RS, places_RS)
            else:
                context_NX[first:last] = weights_RS @ self.values_BSX[sentence, :width].to(self.precise)
            weights_NS[first:last, :width] = weights_RS
        return Attended(context_NX, weights_NS)

    def _energies_of(self, sentence: int, query_RA: Tensor, width: int) -> Tensor:
        """Scores of the first positions of one sentence, (R, S)."""
        keys_1SA = self.keys_BSA[sentence, :width].to(self.precise).unsqueeze(0)
        energies_RS = self.attention.energies(query_RA.unsqueeze(0), keys_1SA).squeeze(0)
        if self.padding_BS is not None:
            energies_RS.masked_fill_(self.padding_BS[sentence, :width], -torch.inf)
        return energies_RS

    def _energies(self, query_RA: Tensor, places_RS: Tensor) -> Tensor:
        """Scores of the positions at ``places_RS`` (counted through all sentences), (R, S)."""
        keys_RSA = self.keys_BSA.flatten(0, 1).index_select(0, places_RS.flatten()).view(*places_RS.shape, -1)
        energies_R1S = self.attention.energies(query_RA.unsqueeze(1), keys_RSA.to(self.precise), scratch=True)
        energies_RS = energies_R1S.squeeze(1)
        if self.padding_BS is not None:
            energies_RS.masked_fill_(self.padding_BS.flatten()[places_RS], -torch.inf)
        return energies_RS

    def sums(self, weights_RS: Tensor, places_RS: Tensor) -> Tensor:
        """Weighted sums of the values at ``places_RS``, of which no copies are made."""
        values_PX = self.values_BSX.flatten(0, 1)
        return F.embedding_bag(places_RS, values_PX, mode="sum", per_sample_weights=weights_RS.to(values_PX.dtype))


def _weights(energies_NS: Tensor, focus: Focus | None) -> Tensor:
    return torch.softmax(energies_NS, dim=1) if focus is None else focus.weights(energies_NS)
