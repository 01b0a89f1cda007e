"""The encoders of models, and what they have read.

Shapes: B sentences, S positions, C an annotation (H of each direction), M distinct states, P = B * S, X rows of a
matrix, U a state of all layers.
"""

from __future__ import annotations

import abc
import dataclasses
from collections.abc import Sequence

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from nmt_core.batches.padding import Padded
from nmt_core.layers.embedding import WordEmbedding
from nmt_core.layers.recurrent import RecurrentEncoder, SharedStates, WordVectors


class Encoded(abc.ABC):
    """B sentences as an encoder has read them: annotations of their positions, and where each direction ended."""

    mask_BS: Tensor

    @abc.abstractmethod
    def annotations(self) -> Tensor:
        """What all directions give out, side by side, (B, S, C)."""

    @abc.abstractmethod
    def times(self, *weights_XC: Tensor) -> list[Tensor]:
        """The products of the annotations with matrices, each (B, S, X)."""

    @abc.abstractmethod
    def ends(self, direction: int) -> Tensor:
        """What a direction gives out when it has read everything, (B, H)."""

    @abc.abstractmethod
    def final_states(self, direction: int) -> Tensor:
        """The states of all its layers then, side by side, (B, U)."""


class WholeEncoding(Encoded):
    """All positions of all sentences; ``backward`` says which directions read from the right."""

    def __init__(
        self,
        annotations_BSC: Tensor,
        states: Sequence[Sequence[Tensor]],
        mask_BS: Tensor,
        *,
        backward: Sequence[bool],
    ) -> None:
        self.mask_BS = mask_BS
        self._annotations_BSC, self._states, self._backward = annotations_BSC, states, backward

    def annotations(self) -> Tensor:
        """(B, S, C)."""
        return self._annotations_BSC

    def times(self, *weights_XC: Tensor) -> list[Tensor]:
        """(B, S, X) each."""
        return [F.linear(self._annotations_BSC, weight_XC) for weight_XC in weights_XC]

    def ends(self, direction: int) -> Tensor:
        """(B, H)."""
        end_BC = self._annotations_BSC[:, self._position(direction)]
        return end_BC.chunk(len(self._states), dim=1)[direction]

    def final_states(self, direction: int) -> Tensor:
        """(B, U)."""
        return torch.cat([layer[:, self._position(direction)] for layer in self._states[direction]], dim=1)

    def _position(self, direction: int) -> int:
        """Where a direction ends; from the left this is the last position, since padding has the state before it."""
        return 0 if self._backward[direction] else -1


class SharedEncoding(Encoded):
    """Every distinct state once; ``backward`` says which directions read from the right."""

    def __init__(self, directions: Sequence[SharedStates], mask_BS: Tensor, *, backward: Sequence[bool]) -> None:
        self.mask_BS = mask_BS
        self._directions, self._backward = directions, backward

    def annotations(self) -> Tensor:
        """(B, S, C)."""
        return torch.cat([F.embedding(one.places_BS, one.outputs_MH) for one in self._directions], dim=2)

    def times(self, *weights_XC: Tensor) -> list[Tensor]:
        """Every distinct state is multiplied once; (B, S, X) each."""
        starts = np.cumsum([0, *(len(one.outputs_MH) for one in self._directions)]).tolist()
        places = [one.places_BS + start for one, start in zip(self._directions, starts, strict=False)]
        places_PD = torch.stack(places, dim=2).flatten(0, 1)
        return [
            F.embedding_bag(places_PD, self._product(weight_XC), mode="sum").view(*self.mask_BS.shape, -1)
            for weight_XC in weights_XC
        ]

    def ends(self, direction: int) -> Tensor:
        """(B, H)."""
        return self._directions[direction].outputs_MH.index_select(0, self._last(direction))

    def final_states(self, direction: int) -> Tensor:
        """(B, U)."""
        return self._directions[direction].states_MU.index_select(0, self._last(direction))

    def _last(self, direction: int) -> Tensor:
        places_BS = self._directions[direction].places_BS
        if self._backward[direction]:
            return places_BS[:, 0]
        return places_BS.gather(1, self.mask_BS.sum(dim=1, keepdim=True) - 1).squeeze(1)

    def _product(self, weight_XC: Tensor) -> Tensor:
        """What the states of each direction add to products with the whole annotation, one below the other."""
        rows = [len(one.outputs_MH) for one in self._directions]
        product = self._directions[0].outputs_MH.new_empty(sum(rows), len(weight_XC))
        weights = weight_XC.chunk(len(rows), dim=1)
        for one, weight_XH, part_MX in zip(self._directions, weights, product.split(rows), strict=True):
            torch.mm(one.outputs_MH, weight_XH.t(), out=part_MX)
        return product


class Reader(nn.Module, abc.ABC):
    """The encoder of a model; ``embedding`` has the vectors of the words it reads (None: it reads none)."""

    embedding: WordEmbedding | None

    @abc.abstractmethod
    def forward(self, source: Padded) -> Encoded:
        """Read B sentences."""


class NoReader(Reader):
    """The encoder of a language model."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = None

    def forward(self, source: Padded) -> Encoded:
        """Read nothing."""
        nothing_BS0 = source.mask_BL.new_zeros(*source.mask_BL.shape, 0, dtype=torch.float32)
        return WholeEncoding(nothing_BS0, [], source.mask_BL, backward=[])


class RecurrentReader(Reader):
    """The encoder of a model: word vectors, read from the left, from the right, or both.

    Without ``reads_end`` the ``</s>`` of a source is not read, except where there is nothing else: its position stays,
    as padding.
    """

    def __init__(
        self,
        embedding: WordEmbedding,
        directions: Sequence[RecurrentEncoder],
        *,
        dropout: nn.Module | None = None,
        reads_end: bool = True,
    ) -> None:
        super().__init__()
        self.embedding = embedding
        self.directions = nn.ModuleList(directions)
        self.dropout, self.reads_end = dropout, reads_end

    @property
    def vectors(self) -> WordVectors:
        """The vectors of words."""
        assert self.embedding is not None
        return self.embedding

    def forward(self, source: Padded) -> Encoded:
        """Every distinct state once in inference on a CPU, where looking for them costs nothing."""
        if not self.reads_end:
            source = _without_end(source)
        directions = [one for one in self.directions if isinstance(one, RecurrentEncoder)]
        backward = [one.backward for one in directions]
        if not torch.is_grad_enabled() and not source.words_BL.is_cuda:
            shared = [one.shared(self.vectors, source) for one in directions]
            return SharedEncoding(shared, source.mask_BL, backward=backward)
        embedded_BSE = self.vectors.of(source)
        read = [one.run(embedded_BSE, source.mask_BL) for one in directions]
        annotations_BSC = torch.cat([outputs_BSH for outputs_BSH, _ in read], dim=2)
        if self.dropout is not None:
            annotations_BSC = self.dropout(annotations_BSC)
        return WholeEncoding(annotations_BSC, [states for _, states in read], source.mask_BL, backward=backward)


def _without_end(source: Padded) -> Padded:
    """The same batch, in which the last word of each sentence counts as padding; one of a sentence is left."""
    words_B1 = (source.mask_BL.sum(dim=1, keepdim=True) - 1).clamp(min=1)
    positions_S = torch.arange(source.mask_BL.shape[1], device=words_B1.device)
    return dataclasses.replace(source, mask_BL=positions_S < words_B1)
