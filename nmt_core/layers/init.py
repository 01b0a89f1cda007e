"""First values of the parameters; every module that has parameters gives them theirs.

``paper``: Bahdanau et al. 2015, appendix B.1, and Cho et al. 2014: recurrent matrices are random
orthogonal, the matrices of the alignment model N(0, 0.001^2) with v_a = 0, all other matrices
N(0, 0.01^2), all biases 0. ``glorot`` scales the other matrices, and the alignment model, to their
sizes, which small models trained with Adam like better; recurrent matrices and biases as before.
``uniform`` draws all of them but biases from U(-r, r) (Luong et al. 2015, section 4.1; Cho et al. 2014, section 4.1.2).
"""

from __future__ import annotations

import math
from typing import Literal

import torch
from torch import Tensor, nn

Initialisation = Literal["paper", "glorot", "uniform"]
DEVIATION = 0.01
RANGE = 0.1


class Initialiser:
    """Draws first values. A parameter that several modules hold gets its value once, from the first."""

    def __init__(self, how: Initialisation, *, seed: int, spread: float = RANGE) -> None:
        self._paper = how == "paper"
        self._spread = spread if how == "uniform" else None
        self._generator = torch.Generator().manual_seed(seed)
        self._done: set[int] = set()

    def matrix(self, parameter: Tensor, *, deviation: float = DEVIATION) -> None:
        """Normal with mean 0, and ``deviation`` as in the papers, or by the sizes of the matrix."""
        if self._is_new(parameter):
            self._draw(parameter, deviation if self._paper else _glorot(parameter))

    def recurrent(self, parameter: Tensor) -> None:
        """Orthogonal matrices, one below the other."""
        if self._spread is not None:
            self.matrix(parameter)
        elif self._is_new(parameter):
            size = parameter.shape[1]
            blocks = [_orthogonal(size, self._generator) for _ in range(parameter.shape[0] // size)]
            parameter.copy_(torch.cat(blocks))

    def energy(self, parameter: Tensor) -> None:
        """The vector v_a of an alignment model."""
        if self._paper:
            self.constant(parameter, 0.0)
        elif self._is_new(parameter):
            self._draw(parameter, 1.0 / math.sqrt(parameter.shape[0]))

    def constant(self, parameter: Tensor, value: float) -> None:
        """The same number everywhere."""
        if self._is_new(parameter):
            parameter.fill_(value)

    def _is_new(self, parameter: Tensor) -> bool:
        new = id(parameter) not in self._done
        self._done.add(id(parameter))
        return new

    def _draw(self, parameter: Tensor, deviation: float) -> None:
        if self._spread is not None:
            parameter.copy_((2 * torch.rand(parameter.shape, generator=self._generator) - 1) * self._spread)
        else:
            parameter.copy_(torch.randn(parameter.shape, generator=self._generator) * deviation)


class Layer(nn.Module):
    """A module with parameters of its own, to which it gives their first values."""

    def initialise(self, initialiser: Initialiser) -> None:
        """Give its own parameters, not those of its children, their first values."""
        raise TypeError(f"{type(self).__name__} has parameters and no method initialise")


@torch.no_grad()
def initialise(model: nn.Module, how: Initialisation, *, seed: int, spread: float = RANGE) -> None:
    """Give every parameter of ``model`` its first value, reproducibly, in the order of its modules.

    ``spread`` is the r of ``uniform``.
    """
    initialiser = Initialiser(how, seed=seed, spread=spread)
    for module in model.modules():
        if any(True for _ in module.parameters(recurse=False)):
            if not isinstance(module, Layer):
                raise TypeError(f"{type(module).__name__} has parameters and no method initialise, as a Layer has")
            module.initialise(initialiser)


def _glorot(parameter: Tensor) -> float:
    """Standard deviation by fan-in and fan-out; embeddings and output matrices by their width alone."""
    rows, columns = parameter.shape
    return math.sqrt(1.0 / columns) if rows > 8 * columns else math.sqrt(2.0 / (rows + columns))


def _orthogonal(size: int, generator: torch.Generator) -> Tensor:
    """The left singular vectors of a matrix of white noise (Cho et al. 2014, section 4.1.1)."""
    left, _, _ = torch.linalg.svd(torch.randn(size, size, generator=generator, dtype=torch.float64))
    orthogonal: Tensor = left.float()
    return orthogonal
