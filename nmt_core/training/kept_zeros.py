"""Weights that stay 0 in training: those of a pruned model (See et al. 2016, section 3.4)."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor, nn

from nmt_core.base.errors import ConfigError
from nmt_core.model_directory.loaded_model import LoadedModel


def zeros_of(loaded: LoadedModel, *, key: str) -> dict[str, Tensor]:
    """Which weights of its matrices are 0 and not only because training begins with 0, by name.

    Raises ConfigError where none is; ``key`` is what asked for it.
    """
    initial = {id(parameter) for parameter in loaded.model.initial_zeros()}
    matrices = {name: parameter for name, parameter in loaded.model.named_parameters() if parameter.dim() == 2}
    zeros = {name: matrix.detach() == 0 for name, matrix in matrices.items() if id(matrix) not in initial}
    found = {name: mask for name, mask in zeros.items() if bool(mask.any())}
    if not found:
        raise ConfigError(f"{key}: {loaded.folder} has no weights that are 0; make some with nmt-core prune")
    return found


class KeptZeros:
    """Some weights of ``trained`` parameters, by name, that are 0."""

    def __init__(self, zeros: Mapping[str, Tensor], trained: Mapping[str, nn.Parameter]) -> None:
        self._zeros = [(trained[name], mask.to(trained[name].device)) for name, mask in zeros.items()]
        self.apply()

    @torch.no_grad()
    def apply(self) -> None:
        """Make them 0 again: moments of the optimiser move them."""
        for parameter, mask in self._zeros:
            parameter.masked_fill_(mask, 0.0)
