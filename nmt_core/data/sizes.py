"""Numbers of rows for which matrix products are made.

In bfloat16 PyTorch's CPU library, oneDNN, compiles a routine for every shape it meets, which takes
milliseconds: many times the product itself. Batches of varying size are therefore filled up, with rows
nobody reads, to one of a few sizes; of the rows at most an eighth is filling.
"""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

_LEAST = 8


def filled(rows: int, like: Tensor) -> int:
    """The number of rows to compute when ``rows`` are wanted, with parameters like ``like``."""
    if like.dtype != torch.bfloat16 or like.is_cuda:
        return rows
    step = max(_LEAST, 1 << max(rows.bit_length() - 4, 0))
    return -(-rows // step) * step


def extended(values: NDArray[np.int64], rows: int) -> NDArray[np.int64]:
    """The values with copies of the last one behind them, ``rows`` in all; without a copy where they are so many.

    ``np.pad`` takes longer than a small product, also where it adds nothing.
    """
    missing = rows - len(values)
    return np.concatenate([values, np.repeat(values[-1:], missing, axis=0)]) if missing else values
