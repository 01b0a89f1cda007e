"""Gradients beside finite differences of an independent computation."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import pytest
from numpy.typing import NDArray
from torch import nn

_STEP = 1e-6


def assert_gradients(
    model: nn.Module,
    parameters: Mapping[str, NDArray[np.floating]],
    total: Callable[[], float],
    *,
    rel: float = 1e-5,
    abs: float = 1e-8,
) -> None:
    """Some numbers of every parameter; ``total`` is computed from ``parameters``, which are changed and put back."""
    generator = np.random.default_rng(0)
    for name, tensor in model.named_parameters():
        assert tensor.grad is not None, name
        values = parameters[name].reshape(-1)
        for index in generator.choice(len(values), size=min(4, len(values)), replace=False):
            kept = values[index]
            values[index] = kept + _STEP
            above = total()
            values[index] = kept - _STEP
            below = total()
            values[index] = kept
            difference = (above - below) / (2 * _STEP)
            assert tensor.grad.reshape(-1)[index].item() == pytest.approx(difference, rel=rel, abs=abs), name
