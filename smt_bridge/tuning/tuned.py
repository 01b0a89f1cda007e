"""What every tuner gives back."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from smt_bridge.tuning.pool import Floats


class Tuned(NamedTuple):
    """Weights of all columns, L1 norm 1, and the metric's score that they reach on the pool."""

    weights: Floats
    score: float


def normalised(weights: Floats) -> Floats:
    """Weights with L1 norm 1, rounded to the six digits with which they are written."""
    norm = math.fsum(np.abs(weights).tolist())
    if norm == 0.0:
        return weights.copy()
    return np.array([float(f"{weight / norm:.6g}") for weight in weights.tolist()])
