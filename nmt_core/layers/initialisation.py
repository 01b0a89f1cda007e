"""First values of the parameters.

``paper``: Bahdanau et al. 2015, appendix B.1, and Cho et al. 2014: recurrent matrices are random
orthogonal, the matrices of the alignment model N(0, 0.001^2) with v_a = 0, all other matrices
N(0, 0.01^2), all biases 0. ``glorot`` scales the other matrices, and the alignment model, to their
sizes, which small models trained with Adam like better; recurrent matrices and biases as before.
"""

from __future__ import annotations

import math
from typing import Literal

import torch
from torch import Tensor, nn

from nmt_core.layers.attention import AdditiveAttention
from nmt_core.layers.lstm import LSTMUnit
from nmt_core.layers.recurrent import GatedUnit

Initialisation = Literal["paper", "glorot"]


@torch.no_grad()
def initialise(model: nn.Module, how: Initialisation, *, seed: int) -> None:
    """Give every parameter of ``model`` its first value, reproducibly."""
    generator = torch.Generator().manual_seed(seed)
    recurrent = {
        id(weight)
        for module in model.modules()
        if isinstance(module, GatedUnit | LSTMUnit)
        for weight in module.parameters()
    }
    alignment = {
        id(weight)
        for module in model.modules()
        if isinstance(module, AdditiveAttention)
        for weight in module.parameters()
    }
    energies = {id(module.energy) for module in model.modules() if isinstance(module, AdditiveAttention)}
    for parameter in model.parameters():
        if id(parameter) in recurrent:
            parameter.copy_(
                torch.cat(
                    [
                        _orthogonal(parameter.shape[1], generator)
                        for _ in range(parameter.shape[0] // parameter.shape[1])
                    ]
                )
            )
        elif how == "glorot" and id(parameter) in energies:
            parameter.copy_(_normal(parameter, 1.0 / math.sqrt(parameter.shape[0]), generator))
        elif parameter.dim() == 1:
            parameter.zero_()
        elif how == "paper":
            parameter.copy_(_normal(parameter, 0.001 if id(parameter) in alignment else 0.01, generator))
        else:
            parameter.copy_(_normal(parameter, _glorot(parameter), generator))


def _glorot(parameter: Tensor) -> float:
    """Standard deviation by fan-in and fan-out; embeddings and output matrices by their width alone."""
    rows, columns = parameter.shape
    return math.sqrt(1.0 / columns) if rows > 8 * columns else math.sqrt(2.0 / (rows + columns))


def _normal(like: Tensor, deviation: float, generator: torch.Generator) -> Tensor:
    return torch.randn(like.shape, generator=generator) * deviation


def _orthogonal(size: int, generator: torch.Generator) -> Tensor:
    """The left singular vectors of a matrix of white noise (Cho et al. 2014, section 4.1.1)."""
    left, _, _ = torch.linalg.svd(torch.randn(size, size, generator=generator, dtype=torch.float64))
    orthogonal: Tensor = left.float()
    return orthogonal
