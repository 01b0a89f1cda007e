"""Attention: the weight of each position of a source for a decoder.

An ``Attention`` makes the keys of a source once, and scores them against a query at every step. ``AttentionLoop`` is
the step: the weights of the positions and the sums of what is attended to. A ``Focus`` limits it to a part of every
source (Luong et al. 2015, section 3.2).

Shapes (see ``nmt_core.layers``): B sentences, K hypotheses of each, N = B * K, S source positions, H size of a query,
A of a key, C of an annotation, X of what is summed (annotations, or products of them), R rows of a run.
"""

from __future__ import annotations

import abc
import functools
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from nmt_core.base.pauses import yield_point
from nmt_core.batches.layout import Layout
from nmt_core.layers.init import Initialiser, Layer
from nmt_core.layers.products import Linear, Product, SharedProduct, shared_matrix
from nmt_core.layers.reader import Encoded
from nmt_core.native import kernels


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
    def keys(self, encoded: Encoded) -> Tensor:
        """What is scored at each position of B sources, (B, S, A), made once."""

    @abc.abstractmethod
    def queries(self) -> Product:
        """What is made of states before they are scored, (N, H) -> (N, A), for one loop."""

    @abc.abstractmethod
    def energies(self, query_BKA: Tensor, keys_BSA: Tensor, *, scratch: bool = False) -> Tensor:
        """Scores before the softmax, (B, K, S); ``scratch``: keys may be overwritten."""

    def energies_in(self, keys_BSA: Tensor) -> Product:
        """``energies`` of the same keys at every step of a loop, (B, K, A) -> (B, K, S)."""
        return lambda query_BKA: self.energies(query_BKA, keys_BSA)


class AdditiveAttention(Attention, Layer):
    """e_ij = v . tanh(W_a s_{i-1} + U_a h_j), softmax over j, c_i = sum of a_ij h_j.

    Bahdanau et al. 2015, section 3.1 and appendix A.1.2. With W = [W_a; U_a] it is the score ``concat`` of Luong et
    al. 2015, section 3.1.
    """

    def __init__(self, hidden: int, annotation: int, alignment: int) -> None:
        super().__init__()
        self.query = Linear(hidden, alignment, biases=0, deviation=0.001)
        self.key = Linear(annotation, alignment, biases=0, deviation=0.001)
        self.energy = nn.Parameter(torch.empty(alignment))

    def initialise(self, initialiser: Initialiser) -> None:
        """0, or in proportion to its size."""
        initialiser.energy(self.energy)

    def keys(self, encoded: Encoded) -> Tensor:
        """U_a h."""
        return encoded.times(self.key.weight)

    def queries(self) -> Product:
        """W_a s."""
        return shared_matrix(self.query.weight)

    def energies(self, query_BKA: Tensor, keys_BSA: Tensor, *, scratch: bool = False) -> Tensor:
        """V . tanh(query + key)."""
        if scratch and query_BKA.shape[1] == 1:
            summed = keys_BSA.add_(query_BKA).unsqueeze(1)
        else:
            summed = keys_BSA.unsqueeze(1) + query_BKA.unsqueeze(2)
        return summed.tanh_() @ self.energy.to(summed.dtype)


class AttentionLoop:
    """The attention of the steps of one loop.

    ``values_BSX`` are summed, ``keys_BSA`` are scored, ``words_B`` says how many words of each source are
    attended to, ``</s>`` among them where the encoder reads it.
    """

    def __init__(self, attention: Attention, values_BSX: Tensor, keys_BSA: Tensor, words_B: Tensor) -> None:
        self.attention, self.query = attention, attention.queries()
        self.values_BSX, self.keys_BSA, self.words_B = values_BSX, keys_BSA, words_B

    def __call__(self, query_NH: Tensor, layout: Layout | None = None, focus: Focus | None = None) -> Attended:
        """Attend from N states to the annotations of their B sentences; without ``layout``, N = B * K."""
        energy_A = self.attention.energy if isinstance(self.attention, AdditiveAttention) and focus is None else None
        if energy_A is not None and kernels.apply_to(query_NH, self.keys_BSA, self.values_BSX, energy_A):
            return self._attend_with_kernels(query_NH, layout, energy_A)
        if layout is not None:
            return self._attend_by_runs(query_NH, layout, focus)
        energies_BKS = self._energies_of(self.query(query_NH).unflatten(0, (len(self.keys_BSA), -1)))
        energies_BKS = energies_BKS.masked_fill(self._padding_BS.unsqueeze(1), -torch.inf)
        energies_NS = energies_BKS.flatten(0, 1)
        weights_NS = torch.softmax(energies_NS, dim=1) if focus is None else focus.weights(energies_NS)
        context_BKX = self._blend(weights_NS.view(energies_BKS.shape))
        return Attended(context_BKX.flatten(0, 1), weights_NS)

    @functools.cached_property
    def _energies_of(self) -> Product:
        return self.attention.energies_in(self.keys_BSA)

    @functools.cached_property
    def _blend(self) -> Product:
        return SharedProduct(self.values_BSX)

    @functools.cached_property
    def _padding_BS(self) -> Tensor:
        """True behind the end of a source."""
        return torch.arange(self.keys_BSA.shape[1], device=self.words_B.device) >= self.words_B.unsqueeze(1)

    def _attend_with_kernels(self, query_NH: Tensor, layout: Layout | None, energy_A: Tensor) -> Attended:
        """The same of additive attention, compiled; weights are in float32 where there is a layout, as without it."""
        if layout is None:
            sentences = len(self.keys_BSA)
            sentences_N = torch.arange(sentences).repeat_interleave(query_NH.shape[0] // sentences)
        else:
            sentences_N = layout.sentences_N
        query_NA = self.query(query_NH)
        context_NX, weights_NS = kernels.attend(
            query_NA, self.keys_BSA, self.values_BSX, energy_A, sentences_N, self.words_B
        )
        return Attended(context_NX, weights_NS.to(query_NH.dtype) if layout is None else weights_NS)

    def _attend_by_runs(self, query_NH: Tensor, layout: Layout, focus: Focus | None) -> Attended:
        """The same where sentences have different numbers of states, some rows at a time.

        The rows of one sentence have its keys and values in common; those of several have copies of the keys.
        """
        precise = torch.promote_types(self.keys_BSA.dtype, torch.float32)
        query_NA = self.query(query_NH).to(precise)
        context_NX = query_NH.new_empty(len(query_NH), self.values_BSX.shape[2])
        weights_NS = query_NA.new_zeros(len(query_NA), self.values_BSX.shape[1])
        for first, last, sentence, width in layout.runs:
            yield_point()
            sentences_R, several = layout.sentences_N[first:last], sentence is None
            keys_BSA, values_BSX = self.keys_BSA[:, :width], self.values_BSX[:, :width]
            keys_BSA = (keys_BSA.index_select(0, sentences_R) if several else keys_BSA[sentence, None]).to(precise)
            query_BKA = query_NA[first:last].unflatten(0, (len(keys_BSA), -1))
            energies_RS = self.attention.energies(query_BKA, keys_BSA, scratch=several).flatten(0, 1)
            energies_RS.masked_fill_(self._padding_BS[sentences_R, :width], -torch.inf)
            attends = functools.partial(torch.softmax, dim=1) if focus is None else focus.rows(first, last).weights
            weights_RS = attends(energies_RS)
            if several:
                context_NX[first:last] = sum_values(self.values_BSX, sentences_R, weights_RS)
            else:
                context_NX[first:last] = weights_RS @ values_BSX[sentence].to(precise)
            weights_NS[first:last, :width] = weights_RS
        return Attended(context_NX, weights_NS)


def sum_values(values_BSX: Tensor, sentences_N: Tensor, weights_NS: Tensor) -> Tensor:
    """Weighted sums of the first values of each row's sentence, (N, X), of which no copies are made."""
    positions_S = torch.arange(weights_NS.shape[1], device=sentences_N.device)
    places_NS = sentences_N.unsqueeze(1) * values_BSX.shape[1] + positions_S
    values_PX = values_BSX.flatten(0, 1)
    return F.embedding_bag(places_NS, values_PX, mode="sum", per_sample_weights=weights_NS.to(values_PX.dtype))
