"""Cells run over known words: layers, and the encoders made of them.

``RecurrentEncoder`` reads in one direction, with any number of layers. It has two forms: all positions of
padded sentences, with the products with all inputs made at once; and, for inference on a CPU, every distinct
state once for all sentences that have it: from the left, sentences share the states of common beginnings,
from the right of common ends.

Shapes: B sentences, S positions, N rows, E embedding, H hidden units, G and U as in ``cells``, W and M distinct
words and states.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from nmt_core.base.pauses import yield_point
from nmt_core.batches.padding import Padded, bucket_rows, pad_rows, whole_positions
from nmt_core.batches.prefix_tree import grow
from nmt_core.layers.cells import CELLS, Cell, GateInputs, PlainLSTM, Recurrence
from nmt_core.layers.dropout import BlockDropout
from nmt_core.layers.embedding import Distinct
from nmt_core.layers.products import shared_matrix
from nmt_core.layers.whole_lstm import in_one_call, run_layer

MOST_LAYERS = 100  # of a model; a folder that asks for millions is refused before they are made


@dataclass(frozen=True)
class Layers:
    """What recurrent layers are like.

    ``residual``: a layer's output is added to its input, from the second layer on. ``dropout`` drops units between
    layers, ``variational`` the same units of the inputs and states of a layer at all positions. ``gate_biases``: every
    gate has a bias.
    """

    cell: str = "gru"
    depth: int = 1
    residual: bool = False
    dropout: float = 0.0
    variational: float = 0.0
    gate_biases: bool = False

    def new_cell(self, hidden: int) -> Cell:
        """A cell of this kind."""
        return CELLS[self.cell](hidden)


Run = Callable[[Recurrence, Tensor, Tensor], Tensor]
"""(recurrence, inputs (B, T, G), first states (B, U)) -> the state at every position, (B, T, U)."""


class UpperLayers(nn.Module):
    """The layers above the first. Each reads what the layers below give out."""

    def __init__(self, layers: Layers, hidden: int) -> None:
        super().__init__()
        self.residual = layers.residual
        cells = [layers.new_cell(hidden) for _ in range(layers.depth - 1)]
        self.cells = nn.ModuleList(cells)
        self.inputs = nn.ModuleList(cell.inputs(hidden, gate_biases=layers.gate_biases) for cell in cells)
        self.state_size = sum(cell.state_size for cell in cells)  # of the states of all these layers side by side
        self.dropout, self.variational = nn.Dropout(layers.dropout), BlockDropout(layers.variational, dim=1)

    def run(self, below_BTH: Tensor, run: Run, first_BU: Tensor | None = None) -> tuple[Tensor, list[Tensor]]:
        """All positions, layer by layer: what the last gives out (B, T, H), and the states of each (B, T, U).

        ``first_BU`` are the first states of all layers, side by side; zeros if None.
        """
        if first_BU is None:
            first_BU = below_BTH.new_zeros(len(below_BTH), self.state_size)
        states = []
        for cell, inputs, state_BU in zip(self._cells(), self.inputs, self._split(first_BU), strict=True):
            recurrence = cell.recurrence(self.variational.kept(below_BTH[:, 0]))
            inputs_BTG = inputs(self.variational(self.dropout(below_BTH)))
            states.append(run(recurrence, inputs_BTG, state_BU.to(inputs_BTG.dtype)))
            below_BTH = self._given_out(below_BTH, cell.hidden_part(states[-1]))
        return below_BTH, states

    def run_in_calls(self, below_BTH: Tensor, first_BU: Tensor) -> tuple[Tensor, list[Tensor]]:
        """``run`` of LSTMs without biases in one call a layer, but of the states the last alone, (B, U) each."""
        states = []
        for cell, inputs, state_BU in zip(self._cells(), self._inputs(), self._split(first_BU), strict=True):
            assert isinstance(cell, PlainLSTM)
            hidden_BTH, last_BU = run_layer(cell, inputs, self.dropout(below_BTH), state_BU)
            states.append(last_BU)
            below_BTH = self._given_out(below_BTH, hidden_BTH)
        return below_BTH, states

    def step(self, below_NH: Tensor, states_NU: Tensor) -> Tensor:
        """The next states of all layers, side by side."""
        states = []
        for cell, inputs, state_NU in zip(self._cells(), self.inputs, self._split(states_NU), strict=True):
            states.append(cell(inputs(below_NH), state_NU))
            below_NH = self._given_out(below_NH, cell.hidden_part(states[-1]))
        return torch.cat(states, dim=1)

    def stepper(self) -> Callable[[Tensor, Tensor], Tensor]:
        """``step`` for one loop, with dropout, for training where a step reads what the one before gave out."""
        assert not self.variational.probability, "the loop has no variational dropout"
        layers = [
            (inputs, shared_matrix(inputs.weight), cell.recurrence())
            for cell, inputs in zip(self._cells(), self._inputs(), strict=True)
        ]

        def step(below_NH: Tensor, states_NU: Tensor) -> Tensor:
            states = []
            for (inputs, product, recurrence), cell, state_NU in zip(
                layers, self._cells(), self._split(states_NU), strict=True
            ):
                states.append(recurrence(inputs.finish(product(self.dropout(below_NH))), state_NU, None))
                below_NH = self._given_out(below_NH, cell.hidden_part(states[-1]))
            return torch.cat(states, dim=1)

        return step

    def top(self, below_NH: Tensor, states_NU: Tensor) -> Tensor:
        """What the last layer gives out where these are the states, (N, H)."""
        for cell, state_NU in zip(self._cells(), self._split(states_NU), strict=True):
            below_NH = self._given_out(below_NH, cell.hidden_part(state_NU))
        return below_NH

    def _given_out(self, below: Tensor, hidden: Tensor) -> Tensor:
        return below + hidden if self.residual else hidden

    def _split(self, states_NU: Tensor) -> Sequence[Tensor]:
        parts: Sequence[Tensor] = states_NU.split([cell.state_size for cell in self._cells()], dim=1)
        return parts

    def _cells(self) -> list[Cell]:
        return [cell for cell in self.cells if isinstance(cell, Cell)]

    def _inputs(self) -> list[GateInputs]:
        return [inputs for inputs in self.inputs if isinstance(inputs, GateInputs)]


def run_all(recurrence: Recurrence, inputs_BTG: Tensor, state_BU: Tensor) -> Tensor:
    """The state at every position, where there is no padding or it is not read: (B, T, U)."""
    states = []
    for inputs_BG in inputs_BTG.unbind(dim=1):
        state_BU = recurrence(inputs_BG, state_BU, None)
        states.append(state_BU)
    return torch.stack(states, dim=1)


class WordVectors(Protocol):
    """The vectors of words."""

    weight: nn.Parameter

    def of(self, sentences: Padded) -> Tensor:
        """Those at all positions of sentences, (B, L, E)."""
        ...

    def distinct(self, sentences: Padded) -> Distinct:
        """The same for sentences on a CPU, so that what is the same need be worked out once."""
        ...


class SharedStates(NamedTuple):
    """What an encoder gives out in M states (M, H), those states, and which each position of each sentence has.

    Any at padding.
    """

    outputs_MH: Tensor
    states_MU: Tensor
    places_BS: Tensor


class RecurrentEncoder(nn.Module):
    """Recurrent layers over embedded words, from the left or from the right; padding leaves states alone."""

    def __init__(self, embedding: int, hidden: int, *, backward: bool = False, layers: Layers | None = None) -> None:
        super().__init__()
        layers = layers or Layers()
        unit = layers.new_cell(hidden)
        self.inputs = unit.inputs(embedding, gate_biases=layers.gate_biases)
        self.unit = unit
        self.upper = UpperLayers(layers, hidden)
        self.variational = BlockDropout(layers.variational, dim=1)
        self.backward = backward

    def forward(self, embedded_BSE: Tensor, mask_BS: Tensor) -> Tensor:
        """What the last layer gives out at every position, (B, S, H); behind the end of a sentence that at its end."""
        return self.run(embedded_BSE, mask_BS)[0]

    def run(self, embedded_BSE: Tensor, mask_BS: Tensor) -> tuple[Tensor, list[Tensor]]:
        """The same, and the states of every layer (B, S, U), or (B, 1, U) of the ends alone."""
        if self.backward and not self.variational.probability and in_one_call(self.unit, embedded_BSE):
            return self._run_in_calls(self.unit, embedded_BSE, mask_BS)

        def run(recurrence: Recurrence, inputs_BSG: Tensor, state_BU: Tensor) -> Tensor:
            return _run(recurrence, inputs_BSG, state_BU, mask_BS, backward=self.backward)

        inputs_BSG = self.inputs(self.variational(embedded_BSE))
        first_BU = embedded_BSE.new_zeros(embedded_BSE.shape[0], self.unit.state_size)
        kept_BH = self.variational.kept(first_BU[:, : self.unit.hidden])
        states_BSU = run(self.unit.recurrence(kept_BH), inputs_BSG, first_BU)
        outputs_BSH, others = self.upper.run(self.unit.hidden_part(states_BSU), run)
        return outputs_BSH, [states_BSU, *others]

    def _run_in_calls(self, unit: PlainLSTM, embedded_BSE: Tensor, mask_BS: Tensor) -> tuple[Tensor, list[Tensor]]:
        """From the right, padding of zeros comes first and leaves the states at zero."""
        reversed_BSE = (embedded_BSE * mask_BS.unsqueeze(2)).flip(1)
        size = unit.state_size + self.upper.state_size
        first_BU, above_BU = embedded_BSE.new_zeros(len(embedded_BSE), size).tensor_split([unit.state_size], dim=1)
        hidden_BSH, last_BU = run_layer(unit, self.inputs, reversed_BSE, first_BU)
        top_BSH, others = self.upper.run_in_calls(hidden_BSH, above_BU)
        return top_BSH.flip(1), [state_BU.unsqueeze(1) for state_BU in (last_BU, *others)]

    def shared(self, embedding: WordVectors, source: Padded) -> SharedStates:
        """The same, each state computed once for all sentences that have it; for inference on a CPU."""
        (words_BS, vectors), lengths_B = embedding.distinct(source), source.mask_BL.sum(dim=1).numpy()
        positions_BS = np.arange(words_BS.shape[1])[None, :]
        if self.backward:
            positions_BS = np.maximum(lengths_B[:, None] - 1 - positions_BS, 0)
            words_BS = np.take_along_axis(words_BS, positions_BS, axis=1)
        tree = grow(np.zeros(len(words_BS), dtype=np.int64), words_BS, lengths_B)
        known, rows = np.unique(np.concatenate([level.words for level in tree.levels]), return_inverse=True)
        known = pad_rows(known, bucket_rows(len(known), embedding.weight))
        inputs_WG = self.inputs(vectors(torch.from_numpy(known)))
        step = self._stepper()
        above_NU = inputs_WG.new_zeros(1, self.unit.state_size + self.upper.state_size)
        states: list[Tensor] = []
        ends = np.cumsum([len(level.words) for level in tree.levels])
        for level, words in zip(tree.levels, np.split(rows.reshape(-1), ends[:-1]), strict=True):
            yield_point()
            places = level.entries[level.nodes] if states else level.nodes
            size = bucket_rows(len(words), inputs_WG)
            inputs_NG = inputs_WG.index_select(0, torch.from_numpy(pad_rows(words, size)))
            above_NU = step(inputs_NG, above_NU.index_select(0, torch.from_numpy(pad_rows(places, size))))
            states.append(above_NU[: len(words)])
        edges_BS = tree.edges_PL if not self.backward else np.take_along_axis(tree.edges_PL, positions_BS, axis=1)
        states_MU = torch.cat(states)
        states_MU = F.pad(states_MU, (0, 0, 0, bucket_rows(len(states_MU), states_MU) - len(states_MU)))
        return SharedStates(self._top(states_MU), states_MU, torch.from_numpy(np.maximum(edges_BS, 0)))

    def _stepper(self) -> Callable[[Tensor, Tensor], Tensor]:
        """One step of all layers, whose states stand side by side."""
        unit, size = self.unit.recurrence(), self.unit.state_size
        if not self.upper.state_size:
            return lambda inputs_NG, states_NU: unit(inputs_NG, states_NU, None)

        def step(inputs_NG: Tensor, states_NU: Tensor) -> Tensor:
            first_NU = unit(inputs_NG, states_NU[:, :size], None)
            others_NU = self.upper.step(self.unit.hidden_part(first_NU), states_NU[:, size:])
            return torch.cat([first_NU, others_NU], dim=1)

        return step

    def _top(self, states_MU: Tensor) -> Tensor:
        size = self.unit.state_size
        if not self.upper.state_size:
            return self.unit.hidden_part(states_MU)
        return self.upper.top(self.unit.hidden_part(states_MU[:, :size]), states_MU[:, size:])


def _run(recurrence: Recurrence, inputs_BSG: Tensor, state_BU: Tensor, mask_BS: Tensor, *, backward: bool) -> Tensor:
    """The state at every position, (B, S, U)."""
    inputs_S, mask_S = inputs_BSG.unbind(dim=1), mask_BS.unsqueeze(2).unbind(dim=1)
    whole_S = whole_positions(mask_BS)  # they need no mask
    positions = range(len(inputs_S))
    states: list[Tensor] = [state_BU] * len(inputs_S)
    for position in reversed(positions) if backward else positions:
        new_BU = recurrence(inputs_S[position], state_BU, None)
        state_BU = new_BU if whole_S[position] else torch.where(mask_S[position], new_BU, state_BU)
        states[position] = state_BU
    return torch.stack(states, dim=1)
