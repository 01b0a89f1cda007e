"""Climbing towards high expected BLEU, to give the exact line search good starting points.

With p(h) the softmax of the model scores of a list, the expected BLEU counts of the corpus are smooth
in the weights, and so is BLEU of them (Smith & Eisner 2006, section 4; Rosti et al. 2010). All sums are in a
fixed order (``ordered_sum``).

Shapes: D searched columns, N = S sentences times L entries.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from smt_bridge.metrics.bleu import COLUMNS, ORDER, REFERENCE_LENGTH, SYSTEM_LENGTH, Counts
from smt_bridge.ordered_sum import ordered_sum
from smt_bridge.tuning.pool import Floats

_Singles = npt.NDArray[np.float32]
_SHARPNESS = 2.0  # largest scaled weight at the start: neither flat nor decided (unless fixed columns set the scale)
_STEP, _MOMENTUM, _MOMENTUM_OF_SQUARES = 0.1, 0.9, 0.95  # of Adam


class ExpectedBleu:
    """Expected BLEU of a pool as a function of the weights (D,) in scaled units.

    ``features`` (D, S, L), ``base`` (S, L) the score of the columns that are not searched, -inf for
    padding, ``statistics`` (S, L, 10).
    """

    def __init__(self, features: Floats, base: Floats, statistics: Counts) -> None:
        self._shape = base.shape
        self._features = np.ascontiguousarray(features.reshape(len(features), -1), dtype=np.float32)
        self._base = base.astype(np.float32).ravel()
        self._scale_is_free = not base[np.isfinite(base)].any()
        self._counts = np.ascontiguousarray(statistics.reshape(-1, COLUMNS).T, dtype=np.float32)

    def gradient(self, weights: Floats) -> Floats:
        """Gradient (D,) of the logarithm of expected BLEU."""
        probabilities = self._probabilities(weights)
        expected = ordered_sum(self._counts * probabilities).astype(np.float64)
        gains = _weighted_sum(_gradient_of_log_bleu(expected), self._counts).reshape(self._shape)
        table = probabilities.reshape(self._shape)
        gains -= ordered_sum(table * gains)[:, None]
        gains *= table
        flat = gains.ravel()
        gradient: Floats = np.array([ordered_sum(row * flat) for row in self._features], dtype=np.float64)
        return gradient

    def climb(self, start: Floats, *, steps: int) -> Floats:
        """Walk uphill from ``start`` (D,) with Adam's step sizes (Kingma & Ba 2015, algorithm 1)."""
        largest = float(np.abs(start).max())
        weights = start * (_SHARPNESS / largest) if largest > 0.0 and self._scale_is_free else start.copy()
        mean, square = np.zeros_like(weights), np.zeros_like(weights)
        for step in range(1, steps + 1):
            gradient = self.gradient(weights)
            mean += (1.0 - _MOMENTUM) * (gradient - mean)
            square += (1.0 - _MOMENTUM_OF_SQUARES) * (gradient**2 - square)
            unbiased = mean / (1.0 - _MOMENTUM**step)
            weights += _STEP * unbiased / (np.sqrt(square / (1.0 - _MOMENTUM_OF_SQUARES**step)) + 1e-12)
        return weights

    def _probabilities(self, weights: Floats) -> _Singles:
        scores = self._base + _weighted_sum(weights, self._features)
        table = scores.reshape(self._shape)
        table -= table.max(axis=1, keepdims=True)
        np.exp(table, out=table)
        table /= ordered_sum(table)[:, None]
        return scores


def _weighted_sum(weights: Floats, rows: _Singles) -> _Singles:
    total = np.zeros(rows.shape[1], dtype=np.float32)
    product = np.empty_like(total)
    for weight, row in zip(weights, rows, strict=True):
        total += np.multiply(row, np.float32(weight), out=product)
    return total


def _gradient_of_log_bleu(counts: Floats) -> Floats:
    """Derivative (10,) by each of the summed counts; counts of zero are taken as a small number."""
    counts = np.maximum(counts, 1e-3)
    gradient = np.zeros(COLUMNS)
    gradient[:ORDER] = 1.0 / (ORDER * counts[:ORDER])
    gradient[ORDER : 2 * ORDER] = -1.0 / (ORDER * counts[ORDER : 2 * ORDER])
    system, reference = counts[SYSTEM_LENGTH], counts[REFERENCE_LENGTH]
    if system < reference:
        gradient[SYSTEM_LENGTH], gradient[REFERENCE_LENGTH] = reference / system**2, -1.0 / system
    return gradient
