"""LSTM layers over all positions in one call of PyTorch, which is cuDNN's on a GPU.

For training on a GPU, of LSTMs without biases alone: those read zeros in a state of zeros without leaving it, so that
padding in front of a sentence needs no mask.

Shapes: B sentences, T positions, E numbers of an input, H hidden units, U = 2H.
"""

from __future__ import annotations

from typing import TypeGuard

import torch
from torch import Tensor

from nmt_core.layers.cells import Cell, GateInputs, PlainLSTM


def in_one_call(cell: Cell, inputs: Tensor) -> TypeGuard[PlainLSTM]:
    """Whether a layer of such cells over these inputs is one call."""
    return type(cell) is PlainLSTM and inputs.is_cuda and torch.is_grad_enabled()


def run_layer(cell: PlainLSTM, inputs: GateInputs, below_BTE: Tensor, first_BU: Tensor) -> tuple[Tensor, Tensor]:
    """The hidden units at every position (B, T, H), and the last state (B, U)."""
    first = [part_BH.unsqueeze(0) for part_BH in first_BU.to(below_BTE.dtype).chunk(2, dim=1)]
    weights = _side_by_side(inputs.weight, cell.gates)
    hidden_BTH, *last = torch.lstm(below_BTE, first, weights, False, 1, 0.0, True, False, True)
    return hidden_BTH, torch.cat([part_1BH.squeeze(0) for part_1BH in last], dim=1)


def _side_by_side(*weights: Tensor) -> list[Tensor]:
    """The weights with the gates in PyTorch's order, one behind the other in memory, where cuDNN wants them."""
    ordered = [_in_order(weight) for weight in weights]
    parts = torch.cat([weight.flatten() for weight in ordered]).split([weight.numel() for weight in ordered])
    return [part.view_as(weight) for part, weight in zip(parts, ordered, strict=True)]


def _in_order(weight: Tensor) -> Tensor:
    """Rows of the gates i, f, o, g as i, f, g, o."""
    i, f, o, g = weight.chunk(4)
    return torch.cat([i, f, g, o])
