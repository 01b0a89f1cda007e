"""LSTM layers over all positions in one call of PyTorch, which is cuDNN's on a GPU.

For training on a GPU, of LSTMs without biases alone: those read zeros in a state of zeros without leaving it, so that
padding in front of a sentence needs no mask.

Shapes: B sentences, T positions, E numbers of an input, H hidden units, U = 2H.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from nmt_core.layers.cells import Cell, GateInputs, PlainLSTM


def in_one_call(cell: Cell, inputs: Tensor) -> bool:
    """Whether a layer of such cells over these inputs is one call."""
    return type(cell) is PlainLSTM and inputs.is_cuda and torch.is_grad_enabled()


def run_layer(cell: PlainLSTM, inputs: GateInputs, below_BTE: Tensor, first_BU: Tensor) -> tuple[Tensor, Tensor]:
    """The hidden units at every position (B, T, H), and the last state (B, U); under autocast in its type."""
    kind = below_BTE.device.type
    dtype = torch.get_autocast_dtype(kind) if torch.is_autocast_enabled(kind) else below_BTE.dtype
    first = [part_BH.unsqueeze(0).contiguous() for part_BH in first_BU.to(dtype).chunk(2, dim=1)]
    weights = _side_by_side(inputs.weight.to(dtype), cell.gates.to(dtype))
    _compute_float32_as_products_do()
    with torch.autocast(kind, enabled=False):  # which would make float16 of everything
        hidden_BTH, *last = torch.lstm(below_BTE.to(dtype), first, weights, False, 1, 0.0, True, False, True)
    return hidden_BTH, torch.cat([part_1BH.squeeze(0) for part_1BH in last], dim=1)


def _compute_float32_as_products_do() -> None:
    """CuDNN's LSTMs have a setting of their own, which is TF32 at first. The backward pass reads it, too."""
    layers: Any = torch.backends.cudnn.rnn  # its type does not say what it has
    layers.fp32_precision = "tf32" if torch.backends.cuda.matmul.fp32_precision == "tf32" else "ieee"


def _side_by_side(into_GE: Tensor, gates_GH: Tensor) -> list[Tensor]:
    """The weights with the gates in PyTorch's order, in one piece of memory, as cuDNN wants them.

    Behind them are the zeros of two biases, for which cuDNN has memory even where there are none.
    """
    ordered = [_in_order(weight) for weight in (into_GE, gates_GH)]
    sizes = [weight.numel() for weight in ordered]
    zeros = gates_GH.new_zeros(2 * len(gates_GH))
    *parts, _ = torch.cat([*(weight.flatten() for weight in ordered), zeros]).split([*sizes, len(zeros)])
    return [part.view_as(weight) for part, weight in zip(parts, ordered, strict=True)]


def _in_order(weight: Tensor) -> Tensor:
    """Rows of the gates i, f, o, g as i, f, g, o."""
    i, f, o, g = weight.chunk(4)
    return torch.cat([i, f, g, o])
