"""The encoders of models, and what they have read.

An encoder has two forms: all positions of padded sentences, with the products with all inputs made at once; and, for
inference on a CPU, every distinct state once for all sentences that have it: from the left, sentences share the states
of common beginnings, from the right of common ends.

Shapes: B sentences, S positions, C an annotation (H of each direction), M distinct states, P = B * S, W distinct words,
X rows of a matrix, U a state of all layers.
"""

from __future__ import annotations

import abc
import dataclasses
import functools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from nmt_core.base.pauses import yield_point
from nmt_core.batches.padding import Padded, bucket_rows, pad_rows
from nmt_core.batches.prefix_tree import grow
from nmt_core.layers.cells import Recurrence
from nmt_core.layers.embedding import Distinct
from nmt_core.layers.recurrent import Layers, Stack
from nmt_core.layers.whole_lstm import in_one_call


class WordVectors(Protocol):
    """The vectors of words."""

    @property
    def weight(self) -> nn.Parameter:
        """Those of the vocabulary, (V, E)."""
        ...

    def of(self, sentences: Padded) -> Tensor:
        """Those at all positions of sentences, (B, L, E)."""
        ...

    def distinct(self, sentences: Padded) -> Distinct:
        """The same for sentences on a CPU, so that what is the same need be worked out once."""
        ...


class SharedStates(NamedTuple):
    """What an encoder gives out in M states, (M, H), and which each position of each sentence has; any at padding.

    ``ends_BH`` is given out where everything is read, ``final_states_BU`` are the states of all layers then.
    """

    outputs_MH: Tensor
    places_BS: Tensor
    ends_BH: Tensor
    final_states_BU: Tensor


class RecurrentEncoder(nn.Module):
    """Recurrent layers over embedded words, from the left or from the right; padding leaves states alone."""

    def __init__(self, embedding: int, hidden: int, layers: Layers, *, backward: bool = False) -> None:
        super().__init__()
        self.stack = Stack(layers, embedding, hidden)
        self.inputs, self.unit, self.upper = self.stack.inputs, self.stack.unit, self.stack.upper
        self.backward = backward

    def forward(self, embedded_BSE: Tensor, mask_BS: Tensor) -> tuple[Tensor, Tensor]:
        """What the last layer gives out at every position, (B, S, H), and the states of all layers at the end, (B, U).

        At padding an encoder from the left has the state of the sentence's end, one from the right zeros.
        """
        first_BU = embedded_BSE.new_zeros(len(embedded_BSE), self.stack.state_size)
        if self.backward and in_one_call(self.unit, embedded_BSE):
            # from the right, padding of zeros comes first and leaves the states at zero
            reversed_BSE = (embedded_BSE * mask_BS.unsqueeze(2)).flip(1)
            top_BSH, ends = self.stack.run_in_calls(reversed_BSE, first_BU)
            return top_BSH.flip(1), torch.cat(ends, dim=1)
        run = functools.partial(_run_masked, mask_BS=mask_BS, backward=self.backward)
        top_BSH, states = self.stack.run(self.inputs(embedded_BSE), first_BU, run)
        return top_BSH, torch.cat([state_BSU[:, self.end] for state_BSU in states], dim=1)

    @property
    def end(self) -> int:
        """The position at which everything is read; from the left the last: padding has the state before it."""
        return 0 if self.backward else -1

    def shared(self, vectors: WordVectors, source: Padded) -> SharedStates:
        """The same, each state computed once for all sentences that have it; for inference on a CPU."""
        (words_BS, vectors_of), lengths_B = vectors.distinct(source), source.mask_BL.sum(dim=1).numpy()
        positions_BS = np.arange(words_BS.shape[1])[None, :]
        if self.backward:
            positions_BS = np.maximum(lengths_B[:, None] - 1 - positions_BS, 0)
            words_BS = np.take_along_axis(words_BS, positions_BS, axis=1)
        tree = grow(np.zeros(len(words_BS), dtype=np.int64), words_BS, lengths_B)
        known, rows = np.unique(np.concatenate([level.words for level in tree.levels]), return_inverse=True)
        known = pad_rows(known, bucket_rows(len(known), vectors.weight))
        inputs_WG = self.inputs(vectors_of(torch.from_numpy(known)))
        states_NU = inputs_WG.new_zeros(1, self.stack.state_size)
        states: list[Tensor] = []
        ends = np.cumsum([len(level.words) for level in tree.levels])
        recurrence = self.stack.recurrence()
        for level, words in zip(tree.levels, np.split(rows.reshape(-1), ends[:-1]), strict=True):
            yield_point()
            places = level.entries[level.nodes] if states else level.nodes
            size = bucket_rows(len(words), inputs_WG)
            inputs_NG = inputs_WG.index_select(0, torch.from_numpy(pad_rows(words, size)))
            before_NU = states_NU.index_select(0, torch.from_numpy(pad_rows(places, size)))
            states_NU = recurrence(inputs_NG, before_NU, None)
            states.append(states_NU[: len(words)])
        ends_B = torch.from_numpy(tree.edges_PL[np.arange(len(words_BS)), lengths_B - 1])
        edges_BS = tree.edges_PL if not self.backward else np.take_along_axis(tree.edges_PL, positions_BS, axis=1)
        states_MU = torch.cat(states)
        states_MU = F.pad(states_MU, (0, 0, 0, bucket_rows(len(states_MU), states_MU) - len(states_MU)))
        outputs_MH, places_BS = self.stack.top(states_MU), torch.from_numpy(np.maximum(edges_BS, 0))
        at_end = (values.index_select(0, ends_B) for values in (outputs_MH, states_MU))
        return SharedStates(outputs_MH, places_BS, *at_end)


def _run_masked(
    recurrence: Recurrence, inputs_BSG: Tensor, state_BU: Tensor, *, mask_BS: Tensor, backward: bool
) -> Tensor:
    """The state at every position, (B, S, U)."""
    inputs_S, mask_S = inputs_BSG.unbind(dim=1), mask_BS.unsqueeze(2).unbind(dim=1)
    # positions without padding need no mask; on a GPU they would have to be waited for
    whole_S = [False] * len(inputs_S) if mask_BS.is_cuda else mask_BS.all(dim=0).tolist()
    positions = range(len(inputs_S))
    states: list[Tensor] = [state_BU] * len(inputs_S)
    for position in reversed(positions) if backward else positions:
        new_BU = recurrence(inputs_S[position], state_BU, None)
        state_BU = new_BU if whole_S[position] else torch.where(mask_S[position], new_BU, state_BU)
        states[position] = state_BU
    return torch.stack(states, dim=1)


@dataclass(frozen=True, kw_only=True)
class Encoded(abc.ABC):
    """B sentences as an encoder has read them, with annotations of their positions.

    ``ends`` are what each direction gives out when it has read everything, (B, H), ``final_states`` the states of all
    its layers then, (B, U).
    """

    mask_BS: Tensor
    ends: Sequence[Tensor] = ()
    final_states: Sequence[Tensor] = ()

    @abc.abstractmethod
    def annotations(self) -> Tensor:
        """What all directions give out, side by side, (B, S, C)."""

    @abc.abstractmethod
    def times(self, weight_XC: Tensor) -> Tensor:
        """The products of the annotations with a matrix, (B, S, X)."""


@dataclass(frozen=True, kw_only=True)
class WholeEncoding(Encoded):
    """All positions of all sentences."""

    annotations_BSC: Tensor

    def annotations(self) -> Tensor:
        """(B, S, C)."""
        return self.annotations_BSC

    def times(self, weight_XC: Tensor) -> Tensor:
        """(B, S, X)."""
        return F.linear(self.annotations_BSC, weight_XC)


@dataclass(frozen=True, kw_only=True)
class SharedEncoding(Encoded):
    """Every distinct state of each direction once."""

    directions: Sequence[SharedStates]

    def annotations(self) -> Tensor:
        """(B, S, C)."""
        return torch.cat([F.embedding(one.places_BS, one.outputs_MH) for one in self.directions], dim=2)

    def times(self, weight_XC: Tensor) -> Tensor:
        """Every distinct state is multiplied once, and its products are added up where it stands; (B, S, X)."""
        rows = [len(one.outputs_MH) for one in self.directions]
        products = self.directions[0].outputs_MH.new_empty(sum(rows), len(weight_XC))  # of a direction below the other
        weights = weight_XC.chunk(len(rows), dim=1)
        for one, weight_XH, product_MX in zip(self.directions, weights, products.split(rows), strict=True):
            torch.mm(one.outputs_MH, weight_XH.t(), out=product_MX)
        starts = np.cumsum([0, *rows[:-1]]).tolist()
        places = [one.places_BS + start for one, start in zip(self.directions, starts, strict=True)]
        places_PD = torch.stack(places, dim=2).flatten(0, 1)
        return F.embedding_bag(places_PD, products, mode="sum").view(*self.mask_BS.shape, -1)


class RecurrentReader(nn.Module):
    """The encoder of a model: word vectors, read from the left, from the right, or both.

    Without ``reads_end`` the ``</s>`` of a source is not read, except where there is nothing else: its position stays,
    as padding.
    """

    def __init__(
        self,
        vectors: WordVectors,
        directions: Sequence[RecurrentEncoder],
        *,
        dropout: nn.Module | None = None,
        reads_end: bool = True,
    ) -> None:
        super().__init__()
        self.vectors = vectors
        self.directions = nn.ModuleList(directions)
        self.dropout, self.reads_end = dropout, reads_end

    def forward(self, source: Padded) -> Encoded:
        """Every distinct state once in inference on a CPU, where looking for them costs nothing."""
        if not self.reads_end:
            source = _without_end(source)
        directions = [one for one in self.directions if isinstance(one, RecurrentEncoder)]
        if not torch.is_grad_enabled() and not source.words_BL.is_cuda:
            shared = [one.shared(self.vectors, source) for one in directions]
            *_, ends, final_states = zip(*shared, strict=True)
            return SharedEncoding(mask_BS=source.mask_BL, ends=ends, final_states=final_states, directions=shared)
        embedded_BSE = self.vectors.of(source)
        outputs, final_states = zip(*(one(embedded_BSE, source.mask_BL) for one in directions), strict=True)
        annotations_BSC = torch.cat(outputs, dim=2)
        if self.dropout is not None:
            annotations_BSC = self.dropout(annotations_BSC)
        parts = [annotations_BSC[:, one.end].chunk(len(directions), dim=1) for one in directions]
        return WholeEncoding(
            mask_BS=source.mask_BL,
            ends=[part[place] for place, part in enumerate(parts)],
            final_states=final_states,
            annotations_BSC=annotations_BSC,
        )


def _without_end(source: Padded) -> Padded:
    """The same batch, in which the last word of each sentence counts as padding; one of a sentence is left."""
    words_B1 = (source.mask_BL.sum(dim=1, keepdim=True) - 1).clamp(min=1)
    positions_S = torch.arange(source.mask_BL.shape[1], device=words_B1.device)
    return dataclasses.replace(source, mask_BL=positions_S < words_B1)
