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
    """Of every parameter along a random direction; ``total`` is of ``parameters``, which are changed and put back."""
    generator = np.random.default_rng(0)
    for name, tensor in model.named_parameters():
        assert tensor.grad is not None, name
        values = parameters[name]
        kept, direction = values.copy(), generator.normal(size=values.shape)
        direction /= np.linalg.norm(direction)
        np.add(kept, _STEP * direction, out=values)
        above = total()
        np.subtract(kept, _STEP * direction, out=values)
        below = total()
        values[...] = kept
        expected = float((tensor.grad.numpy() * direction).sum())
        assert expected == pytest.approx((above - below) / (2 * _STEP), rel=rel, abs=abs), name
