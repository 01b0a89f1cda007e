"""Sums whose order is fixed: the same bytes with any version of NumPy, number of threads and kind of processor.

NumPy's own reductions and BLAS add in an order that depends on these. Here the second half of the row is added to
the first until one number is left; only additions of whole arrays are asked of NumPy, whose order cannot matter.
"""

from __future__ import annotations

from typing import TypeVar

import numpy as np
import numpy.typing as npt

_Number = TypeVar("_Number", np.float32, np.float64)


def ordered_sum(values: npt.NDArray[_Number]) -> npt.NDArray[_Number]:
    """Sum over the last axis.

    >>> ordered_sum(np.array([[1.0, 2.0, 3.0], [0.5, 0.25, 0.25]])).tolist()
    [6.0, 1.0]
    """
    if values.shape[-1] == 0:
        return np.zeros(values.shape[:-1], dtype=values.dtype)
    while values.shape[-1] > 1:
        half, odd = divmod(values.shape[-1], 2)
        folded = values[..., :half] + values[..., half : 2 * half]
        if odd:
            folded[..., 0] += values[..., -1]
        values = folded
    total: npt.NDArray[_Number] = values[..., 0].copy()
    return total
