"""Which vectors are near to which: exact search in NumPy, in blocks; free of torch.

Shapes: D numbers of a vector, M vectors searched, Q queries, K neighbours.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Vectors = npt.NDArray[np.float32]
_BLOCK = 1 << 24  # cosines worked out at a time


class Neighbours(NamedTuple):
    """Places of the nearest vectors, the nearest first, and their cosines, both (Q, K)."""

    places_QK: npt.NDArray[np.int64]
    cosines_QK: Vectors


def nearest(queries_QD: Vectors, vectors_MD: Vectors, *, neighbours: int) -> Neighbours:
    """The vectors with the largest cosines after the mean of all M is taken off both; of equals the first.

    States of a network have a large part in common, which would make everything near to everything.
    """
    mean_D = vectors_MD.mean(axis=0, dtype=np.float64).astype(np.float32)
    unit_MD, unit_QD = _units(vectors_MD - mean_D), _units(queries_QD - mean_D)
    places, cosines = [], []
    rows = max(1, _BLOCK // len(unit_MD))
    for first in range(0, len(unit_QD), rows):
        cosines_QM = unit_QD[first : first + rows] @ unit_MD.T
        order_QK = np.argsort(-cosines_QM, axis=1, kind="stable")[:, :neighbours]
        places.append(order_QK)
        cosines.append(np.take_along_axis(cosines_QM, order_QK, axis=1))
    return Neighbours(np.concatenate(places), np.concatenate(cosines))


def _units(vectors: Vectors) -> Vectors:
    """Of length 1; zeros stay zeros."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    units: Vectors = (vectors / np.where(lengths == 0.0, 1.0, lengths)).astype(np.float32)
    return units
