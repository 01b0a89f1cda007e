"""Where a program waits for a GPU: the operations that make it wait, and the lines of the program."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any, Literal

import torch
from torch import Tensor
from torch.utils._pytree import tree_flatten

Reason = Literal["read", "copy", "pageable"]
_REPOSITORY = Path(__file__).resolve().parent.parent
_SIMULATION = {str(_REPOSITORY / "tests" / name) for name in ("gpu_waits.py", "pretended_gpu.py")}
# what they return, or its size, depends on values that only the GPU has
_READ_VALUES = {
    *("_local_scalar_dense", "equal", "allclose", "nonzero", "masked_select", "bincount"),
    *("_unique", "_unique2", "unique_dim", "unique_consecutive"),
    *("item", "is_nonzero", "nonzero_numpy"),  # under inference_mode these are not taken apart
}


@dataclass(frozen=True)
class Wait:
    """One wait for the GPU.

    Attributes:
        reason: ``read`` of what the GPU computed (a value, or a size that depends on values), ``copy`` to the GPU
            that the program waits for, or ``pageable``: a copy from memory that is not pinned, which may wait.
        operation: What PyTorch calls it.
        line: The line of the program, such as ``nmt_core/inference/search/sampling.py:104``.
    """

    reason: Reason
    operation: str
    line: str


def wait_at_the_caller(reason: Reason, operation: str) -> Wait:
    """A wait of the innermost function that belongs to this repository."""
    for frame in _frames():
        file = Path(frame.f_code.co_filename)
        if str(file) not in _SIMULATION and file.is_relative_to(_REPOSITORY) and "site-packages" not in file.parts:
            return Wait(reason, operation, f"{file.relative_to(_REPOSITORY)}:{frame.f_lineno}")
    return Wait(reason, operation, "?")


def _frames() -> Iterator[FrameType]:
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        yield frame
        frame = frame.f_back


def reads_values(operation: str, args: Any, kwargs: Any) -> bool:
    """Whether an operation of ``aten`` on a GPU makes the program wait for values."""
    if operation == "repeat_interleave":
        return kwargs.get("output_size") is None and not (len(args) > 1 and isinstance(args[1], int))
    if operation == "where":
        return len(args) == 1  # without values to choose from
    if operation == "index":
        return any(leaf.dtype == torch.bool for leaf in tree_flatten(args[1])[0] if isinstance(leaf, Tensor))
    if operation in ("index_put_", "index_put"):
        one_number = args[2].device.type == "cpu" and args[2].numel() == 1  # PyTorch fills without an index then
        return reads_values("index", args, kwargs) and not one_number
    return operation in _READ_VALUES
