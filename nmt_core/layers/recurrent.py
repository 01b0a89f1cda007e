"""Recurrent layers above each other, run over known words or step by step.

Shapes: B sentences, T positions, N rows, E numbers of an input, H hidden units, G and U as in ``cells``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from nmt_core.layers.cells import Cell, GateInputs, PlainLSTM, Recurrence
from nmt_core.layers.products import Product, shared_matrix
from nmt_core.layers.whole_lstm import run_layer

MOST_LAYERS = 100  # of a model; a folder that asks for millions is refused before they are made


@dataclass(frozen=True)
class Layers:
    """What recurrent layers are like.

    ``cell`` makes a cell of so many hidden units; ``dropout`` drops units between layers (Zaremba et al. 2014).
    """

    cell: Callable[[int], Cell]
    depth: int = 1
    dropout: float = 0.0


Run = Callable[[Recurrence, Tensor, Tensor], Tensor]
"""(recurrence, inputs (B, T, G), first states (B, U)) -> the state at every position, (B, T, U)."""


class Stack:
    """Layers above each other: the first, and ``upper`` ones, each of which reads the one below.

    A module that has a stack registers ``inputs``, ``unit`` and ``upper`` under the names that their parameters have in
    model directories. ``states`` has the states of all layers side by side. ``unit`` is the cell of the first layer.
    """

    def __init__(self, layers: Layers, size: int, hidden: int) -> None:
        self.dropout, self.unit = layers.dropout, layers.cell(hidden)
        self.inputs = self.unit.inputs(size)
        cells = [layers.cell(hidden) for _ in range(layers.depth - 1)]
        inputs = [cell.inputs(hidden) for cell in cells]
        self.upper = nn.ModuleDict({"cells": nn.ModuleList(cells), "inputs": nn.ModuleList(inputs)})
        self._others = list(zip(cells, inputs, strict=True))
        self.state_size = layers.depth * self.unit.state_size

    def start(self, hidden_NH: Tensor) -> Tensor:
        """States of these hidden units in the first layer, and zeros elsewhere, (N, U)."""
        return F.pad(hidden_NH, (0, self.state_size - self.unit.hidden))

    def top(self, states_NU: Tensor) -> Tensor:
        """What the last layer gives out where these are the states, (N, H)."""
        return self.unit.hidden_part(states_NU[:, -self.unit.state_size :])

    def recurrence(self) -> Recurrence:
        """All layers for the steps of one loop; a context is the first layer's."""
        first = self.unit.recurrence()
        if not self._others:
            return first
        upper = [(cell, _inputs_of_loop(inputs), cell.recurrence()) for cell, inputs in self._others]

        def step(inputs_NG: Tensor, states_NU: Tensor, context_NG: Tensor | None) -> Tensor:
            first_NU, *others = self._split(states_NU)
            states = [first(inputs_NG, first_NU, context_NG)]
            below_NH = self.unit.hidden_part(states[0])
            for (cell, inputs, recurrence), state_NU in zip(upper, others, strict=True):
                states.append(recurrence(inputs(self._dropped(below_NH)), state_NU, None))
                below_NH = cell.hidden_part(states[-1])
            return torch.cat(states, dim=1)

        return step

    def run(self, inputs_BTG: Tensor, states_BU: Tensor, run: Run) -> tuple[Tensor, list[Tensor]]:
        """All positions, layer by layer: what the last gives out (B, T, H), and the states of each (B, T, U)."""
        first_BU, *others = self._split(states_BU)
        found = [run(self.unit.recurrence(), inputs_BTG, first_BU)]
        for (cell, inputs), state_BU in zip(self._others, others, strict=True):
            inputs_BTG = inputs(self._dropped(cell.hidden_part(found[-1])))
            found.append(run(cell.recurrence(), inputs_BTG, state_BU.to(inputs_BTG.dtype)))
        return self.unit.hidden_part(found[-1]), found

    def run_in_calls(self, embedded_BTE: Tensor, states_BU: Tensor) -> tuple[Tensor, list[Tensor]]:
        """``run`` where ``in_one_call``, but of the states the last alone, (B, U) each."""
        below_BTH, found = embedded_BTE, []
        layers = [(self.unit, self.inputs), *self._others]
        for number, ((cell, inputs), state_BU) in enumerate(zip(layers, self._split(states_BU), strict=True)):
            assert isinstance(cell, PlainLSTM)
            read_BTE = self._dropped(below_BTH) if number else below_BTH
            below_BTH, last_BU = run_layer(cell, inputs, read_BTE, state_BU)
            found.append(last_BU)
        return below_BTH, found

    def _split(self, states_NU: Tensor) -> tuple[Tensor, ...]:
        """The states of each layer."""
        return torch.split(states_NU, self.unit.state_size, dim=1)

    def _dropped(self, below: Tensor) -> Tensor:
        """What a layer reads of the one below."""
        return F.dropout(below, self.dropout, self.upper.training)


def _inputs_of_loop(inputs: GateInputs) -> Product:
    """``inputs`` for one loop, whose gradient is one product."""
    if not torch.is_grad_enabled():
        return inputs
    product = shared_matrix(inputs.weight)
    return lambda below_NH: inputs.finish(product(below_NH))


def run_all(recurrence: Recurrence, inputs_BTG: Tensor, state_BU: Tensor) -> Tensor:
    """The state at every position, where there is no padding or it is not read: (B, T, U)."""
    states = []
    for inputs_BG in inputs_BTG.unbind(dim=1):
        state_BU = recurrence(inputs_BG, state_BU, None)
        states.append(state_BU)
    return torch.stack(states, dim=1)
