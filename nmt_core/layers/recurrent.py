"""Recurrent layers above each other, run over known words or step by step.

Shapes: B sentences, T positions, N rows, E numbers of an input, H hidden units, G and U as in ``cells``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from nmt_core.layers.cells import GRU, Cell, GateInputs, PlainLSTM, Recurrence
from nmt_core.layers.dropout import draw_kept, drop_along
from nmt_core.layers.products import Product, shared_matrix
from nmt_core.layers.whole_lstm import in_one_call, run_layer

MOST_LAYERS = 100  # of a model; a folder that asks for millions is refused before they are made


@dataclass(frozen=True)
class Layers:
    """What recurrent layers are like.

    ``cell`` makes a cell of so many hidden units. ``residual``: a layer's output is added to its input, from the second
    layer on. ``dropout`` drops units between layers, ``variational`` the same units of the inputs and states of a layer
    at all positions. ``gate_biases``: every gate has a bias.
    """

    cell: Callable[[int], Cell] = GRU
    depth: int = 1
    residual: bool = False
    dropout: float = 0.0
    variational: float = 0.0
    gate_biases: bool = False


Run = Callable[[Recurrence, Tensor, Tensor], Tensor]
"""(recurrence, inputs (B, T, G), first states (B, U)) -> the state at every position, (B, T, U)."""


class Stack:
    """Layers above each other: the first, and ``upper`` ones, each of which reads the one below.

    A module that has a stack registers ``inputs``, ``unit`` and ``upper`` under the names that their parameters have in
    model directories. ``states`` are those of all layers side by side. ``unit`` is the cell of the first layer, of the
    layers' kind unless it is given.
    """

    def __init__(self, layers: Layers, size: int, hidden: int, *, unit: Cell | None = None) -> None:
        self.layers, self.unit = layers, unit or layers.cell(hidden)
        self.inputs = self.unit.inputs(size, gate_biases=layers.gate_biases)
        cells = [layers.cell(hidden) for _ in range(layers.depth - 1)]
        inputs = [cell.inputs(hidden, gate_biases=layers.gate_biases) for cell in cells]
        self.upper = nn.ModuleDict({"cells": nn.ModuleList(cells), "inputs": nn.ModuleList(inputs)})
        self._others = list(zip(cells, inputs, strict=True))
        self.sizes = [cell.state_size for cell in (self.unit, *cells)]
        self.state_size = sum(self.sizes)

    def start(self, hidden_NH: Tensor) -> Tensor:
        """States of these hidden units in the first layer, and zeros elsewhere, (N, U)."""
        return F.pad(hidden_NH, (0, self.state_size - self.unit.hidden))

    def top(self, states_NU: Tensor) -> Tensor:
        """What the last layer gives out where these are the states, (N, H)."""
        first_NU, *others = states_NU.split(self.sizes, dim=1)
        below_NH = self.unit.hidden_part(first_NU)
        for (cell, _), state_NU in zip(self._others, others, strict=True):
            below_NH = self._given_out(below_NH, cell.hidden_part(state_NU))
        return below_NH

    def recurrence(self) -> Recurrence:
        """All layers for the steps of one loop; a context is the first layer's."""
        assert not (self.upper.training and self.layers.variational), "the loop has no variational dropout"
        first = self.unit.recurrence()
        if not self._others:
            return first
        upper = [(cell, _inputs_of_loop(inputs), cell.recurrence()) for cell, inputs in self._others]

        def step(inputs_NG: Tensor, states_NU: Tensor, context_NG: Tensor | None) -> Tensor:
            first_NU, *others = states_NU.split(self.sizes, dim=1)
            states = [first(inputs_NG, first_NU, context_NG)]
            below_NH = self.unit.hidden_part(states[0])
            for (cell, inputs, recurrence), state_NU in zip(upper, others, strict=True):
                states.append(recurrence(inputs(self._dropped(below_NH)), state_NU, None))
                below_NH = self._given_out(below_NH, cell.hidden_part(states[-1]))
            return torch.cat(states, dim=1)

        return step

    def first_inputs(self, embedded_BTE: Tensor) -> Tensor:
        """What the first layer reads at all positions, (B, T, G)."""
        inputs_BTG: Tensor = self.inputs(self._varied(embedded_BTE))
        return inputs_BTG

    def first_recurrence(self, first_BU: Tensor) -> Recurrence:
        """The first layer for the steps of one loop that begins with these states of it."""
        return self.unit.recurrence(self._kept(self.unit.hidden_part(first_BU)))

    def run(self, inputs_BTG: Tensor, states_BU: Tensor, run: Run) -> tuple[Tensor, list[Tensor]]:
        """All positions, layer by layer: what the last gives out (B, T, H), and the states of each (B, T, U)."""
        first_BU, *others = states_BU.split(self.sizes, dim=1)
        first_BTU = run(self.first_recurrence(first_BU), inputs_BTG, first_BU)
        top_BTH, others_BTU = self.run_upper(self.unit.hidden_part(first_BTU), others, run)
        return top_BTH, [first_BTU, *others_BTU]

    def run_upper(self, below_BTH: Tensor, states: Sequence[Tensor], run: Run) -> tuple[Tensor, list[Tensor]]:
        """The same of the layers above the first, which gives out ``below``; ``states`` are their first ones."""
        found = []
        for (cell, inputs), state_BU in zip(self._others, states, strict=True):
            recurrence = cell.recurrence(self._kept(below_BTH[:, 0]))
            inputs_BTG = inputs(self._varied(self._dropped(below_BTH)))
            found.append(run(recurrence, inputs_BTG, state_BU.to(inputs_BTG.dtype)))
            below_BTH = self._given_out(below_BTH, cell.hidden_part(found[-1]))
        return below_BTH, found

    def in_one_call(self, inputs: Tensor) -> bool:
        """Whether all positions of these inputs are one call a layer, which knows no masks of dropout."""
        return not self.layers.variational and in_one_call(self.unit, inputs)

    def run_in_calls(self, embedded_BTE: Tensor, states_BU: Tensor) -> tuple[Tensor, list[Tensor]]:
        """``run`` where ``in_one_call``, but of the states the last alone, (B, U) each."""
        first_BU, *others = states_BU.split(self.sizes, dim=1)
        assert isinstance(self.unit, PlainLSTM)
        below_BTH, last_BU = run_layer(self.unit, self.inputs, embedded_BTE, first_BU)
        found = [last_BU]
        for (cell, inputs), state_BU in zip(self._others, others, strict=True):
            assert isinstance(cell, PlainLSTM)
            hidden_BTH, last_BU = run_layer(cell, inputs, self._dropped(below_BTH), state_BU)
            found.append(last_BU)
            below_BTH = self._given_out(below_BTH, hidden_BTH)
        return below_BTH, found

    def _given_out(self, below: Tensor, hidden: Tensor) -> Tensor:
        return below + hidden if self.layers.residual else hidden

    def _dropped(self, below: Tensor) -> Tensor:
        """What a layer reads of the one below."""
        return F.dropout(below, self.layers.dropout, self.upper.training)

    def _varied(self, inputs_BTE: Tensor) -> Tensor:
        """What a layer reads, without the same units at all positions."""
        varies = self.upper.training and self.layers.variational
        return drop_along(inputs_BTE, self.layers.variational, dim=1) if varies else inputs_BTE

    def _kept(self, hidden_BH: Tensor) -> Tensor | None:
        """What the states of a layer are multiplied with at every step; None: nothing is dropped."""
        varies = self.upper.training and self.layers.variational
        return draw_kept(hidden_BH, self.layers.variational) if varies else None


def _inputs_of_loop(inputs: GateInputs) -> Product:
    """``inputs`` for one loop, whose gradient is one product."""
    if not torch.is_grad_enabled():
        return inputs
    product = shared_matrix(inputs.weight)
    return lambda below_NH: inputs.finish(product(below_NH))


def run_all(recurrence: Recurrence, inputs_BTG: Tensor, state_BU: Tensor, *, waits: bool = False) -> Tensor:
    """The state at every position, where there is no padding or it is not read: (B, T, U).

    ``waits``: the first position has the first state, the next one that after the second input.
    """
    states = []
    for position, inputs_BG in enumerate(inputs_BTG.unbind(dim=1)):
        if position > 0 or not waits:
            state_BU = recurrence(inputs_BG, state_BU, None)
        states.append(state_BU)
    return torch.stack(states, dim=1)
