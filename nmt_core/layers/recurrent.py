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
    """The parameters of the layers above the first, and what is dropped of the inputs of layers."""

    def __init__(self, layers: Layers, hidden: int) -> None:
        super().__init__()
        self.residual = layers.residual
        cells = [layers.new_cell(hidden) for _ in range(layers.depth - 1)]
        self.cells = nn.ModuleList(cells)
        self.inputs = nn.ModuleList(cell.inputs(hidden, gate_biases=layers.gate_biases) for cell in cells)
        self.dropout, self.variational = nn.Dropout(layers.dropout), BlockDropout(layers.variational, dim=1)


class Stack:
    """The layers of a module: the first, whose inputs are its own, and others, each of which reads the one below.

    Their parameters have the names that the module gives these parts. ``states`` are those of all layers side by side.
    """

    def __init__(self, inputs: GateInputs, unit: Cell, upper: UpperLayers) -> None:
        self.inputs, self.unit, self.upper = inputs, unit, upper
        self._others = [
            (cell, inputs)
            for cell, inputs in zip(upper.cells, upper.inputs, strict=True)
            if isinstance(cell, Cell) and isinstance(inputs, GateInputs)  # which lists of modules do not say
        ]
        self.sizes = [unit.state_size, *(cell.state_size for cell, _ in self._others)]
        self.state_size = sum(self.sizes)

    def start(self, hidden_NH: Tensor) -> Tensor:
        """States of these hidden units in the first layer, and zeros elsewhere, (N, U)."""
        return F.pad(hidden_NH, (0, self.state_size - self.unit.hidden))

    def split(self, states_NU: Tensor) -> Sequence[Tensor]:
        """The states of each layer."""
        parts: Sequence[Tensor] = states_NU.split(self.sizes, dim=1)
        return parts

    def lowest(self, states_NU: Tensor) -> Tensor:
        """What the first layer gives out where these are the states, (N, H)."""
        return self.unit.hidden_part(self.split(states_NU)[0])

    def inputs_of(self, embedded_BTE: Tensor) -> Tensor:
        """What the first layer reads at all positions, (B, T, G)."""
        inputs_BTG: Tensor = self.inputs(self.upper.variational(embedded_BTE))
        return inputs_BTG

    def first_recurrence(self, first_BU: Tensor) -> Recurrence:
        """The first layer for the steps of one loop that begins with these states of it."""
        return self.unit.recurrence(self.upper.variational.kept(self.unit.hidden_part(first_BU)))

    def step(self, inputs_NG: Tensor, states_NU: Tensor, context_NG: Tensor | None = None) -> Tensor:
        """The next states; the first layer reads ``inputs``, and the term of a context."""
        first_NU, *others = self.split(states_NU)
        states = [self.unit(inputs_NG, first_NU, context_NG)]
        below_NH = self.unit.hidden_part(states[0])
        for (cell, inputs), state_NU in zip(self._others, others, strict=True):
            states.append(cell(inputs(below_NH), state_NU))
            below_NH = self._given_out(below_NH, cell.hidden_part(states[-1]))
        return torch.cat(states, dim=1) if others else states[0]

    def stepper(self) -> Recurrence:
        """``step`` for one loop, with dropout, for training where a step reads what the one before gave out."""
        assert not self.upper.variational.probability, "the loop has no variational dropout"
        first = self.unit.recurrence()
        upper = [(cell, inputs, shared_matrix(inputs.weight), cell.recurrence()) for cell, inputs in self._others]

        def step(inputs_NG: Tensor, states_NU: Tensor, context_NG: Tensor | None) -> Tensor:
            first_NU, *others = self.split(states_NU)
            states = [first(inputs_NG, first_NU, context_NG)]
            below_NH = self.unit.hidden_part(states[0])
            for (cell, inputs, product, recurrence), state_NU in zip(upper, others, strict=True):
                gates_NG = inputs.finish(product(self.upper.dropout(below_NH)))
                states.append(recurrence(gates_NG, state_NU, None))
                below_NH = self._given_out(below_NH, cell.hidden_part(states[-1]))
            return torch.cat(states, dim=1)

        return step

    def top(self, states_NU: Tensor) -> Tensor:
        """What the last layer gives out where these are the states, (N, H)."""
        first_NU, *others = self.split(states_NU)
        below_NH = self.unit.hidden_part(first_NU)
        for (cell, _), state_NU in zip(self._others, others, strict=True):
            below_NH = self._given_out(below_NH, cell.hidden_part(state_NU))
        return below_NH

    def run(self, inputs_BTG: Tensor, states_BU: Tensor, run: Run) -> tuple[Tensor, list[Tensor]]:
        """All positions, layer by layer: what the last gives out (B, T, H), and the states of each (B, T, U)."""
        first_BU, *others = self.split(states_BU)
        first_BTU = run(self.first_recurrence(first_BU), inputs_BTG, first_BU)
        top_BTH, others_BTU = self.run_upper(self.unit.hidden_part(first_BTU), others, run)
        return top_BTH, [first_BTU, *others_BTU]

    def run_upper(self, below_BTH: Tensor, states: Sequence[Tensor], run: Run) -> tuple[Tensor, list[Tensor]]:
        """The same of the layers above the first, which gives out ``below``; ``states`` are their first ones."""
        found = []
        for (cell, inputs), state_BU in zip(self._others, states, strict=True):
            recurrence = cell.recurrence(self.upper.variational.kept(below_BTH[:, 0]))
            inputs_BTG = inputs(self.upper.variational(self.upper.dropout(below_BTH)))
            found.append(run(recurrence, inputs_BTG, state_BU.to(inputs_BTG.dtype)))
            below_BTH = self._given_out(below_BTH, cell.hidden_part(found[-1]))
        return below_BTH, found

    def run_in_calls(self, embedded_BTE: Tensor, states_BU: Tensor) -> tuple[Tensor, list[Tensor]]:
        """``run`` where ``in_one_call``, but of the states the last alone, (B, U) each."""
        first_BU, *others = self.split(states_BU)
        assert isinstance(self.unit, PlainLSTM)
        below_BTH, last_BU = run_layer(self.unit, self.inputs, embedded_BTE, first_BU)
        found = [last_BU]
        for (cell, inputs), state_BU in zip(self._others, others, strict=True):
            assert isinstance(cell, PlainLSTM)
            hidden_BTH, last_BU = run_layer(cell, inputs, self.upper.dropout(below_BTH), state_BU)
            found.append(last_BU)
            below_BTH = self._given_out(below_BTH, hidden_BTH)
        return below_BTH, found

    def in_one_call(self, inputs: Tensor) -> bool:
        """Whether all positions of these inputs are one call a layer, which knows no masks of dropout."""
        return not self.upper.variational.probability and in_one_call(self.unit, inputs)

    def _given_out(self, below: Tensor, hidden: Tensor) -> Tensor:
        return below + hidden if self.upper.residual else hidden


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
        self.stack = Stack(self.inputs, self.unit, self.upper)
        self.backward = backward

    def forward(self, embedded_BSE: Tensor, mask_BS: Tensor) -> Tensor:
        """What the last layer gives out at every position, (B, S, H); behind the end of a sentence that at its end."""
        return self.run(embedded_BSE, mask_BS)[0]

    def run(self, embedded_BSE: Tensor, mask_BS: Tensor) -> tuple[Tensor, list[Tensor]]:
        """The same, and the states of every layer (B, S, U), or (B, 1, U) of the ends alone."""
        first_BU = embedded_BSE.new_zeros(len(embedded_BSE), self.stack.state_size)
        if self.backward and self.stack.in_one_call(embedded_BSE):
            # from the right, padding of zeros comes first and leaves the states at zero
            reversed_BSE = (embedded_BSE * mask_BS.unsqueeze(2)).flip(1)
            top_BSH, ends = self.stack.run_in_calls(reversed_BSE, first_BU)
            return top_BSH.flip(1), [state_BU.unsqueeze(1) for state_BU in ends]

        def run(recurrence: Recurrence, inputs_BSG: Tensor, state_BU: Tensor) -> Tensor:
            return _run(recurrence, inputs_BSG, state_BU, mask_BS, backward=self.backward)

        return self.stack.run(self.stack.inputs_of(embedded_BSE), first_BU, run)

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
        states_NU = inputs_WG.new_zeros(1, self.stack.state_size)
        states: list[Tensor] = []
        ends = np.cumsum([len(level.words) for level in tree.levels])
        for level, words in zip(tree.levels, np.split(rows.reshape(-1), ends[:-1]), strict=True):
            yield_point()
            places = level.entries[level.nodes] if states else level.nodes
            size = bucket_rows(len(words), inputs_WG)
            inputs_NG = inputs_WG.index_select(0, torch.from_numpy(pad_rows(words, size)))
            before_NU = states_NU.index_select(0, torch.from_numpy(pad_rows(places, size)))
            states_NU = self.stack.step(inputs_NG, before_NU)
            states.append(states_NU[: len(words)])
        edges_BS = tree.edges_PL if not self.backward else np.take_along_axis(tree.edges_PL, positions_BS, axis=1)
        states_MU = torch.cat(states)
        states_MU = F.pad(states_MU, (0, 0, 0, bucket_rows(len(states_MU), states_MU) - len(states_MU)))
        return SharedStates(self.stack.top(states_MU), states_MU, torch.from_numpy(np.maximum(edges_BS, 0)))


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
