"""Matrices of which many numbers are 0, as files hold them.

A matrix NAME of N numbers is two tensors: ``NAME.mask`` has a bit for every number, row by row, the lowest bit of a
byte first, 1 where the number is not 0 (N / 8 bytes, rounded up); ``NAME.values`` has those that are not, in the same
order. This is smaller than the matrix from 3 % zeros on; at 80 % it is 0.925 bytes a number in place of 4.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import torch
from torch import Tensor

from nmt_core.base.errors import ModelError
from nmt_core.model_directory.tensors import TensorFile

_MASK, _VALUES = ".mask", ".values"
_WORTH_IT = 1 / 32  # of the numbers of a matrix: what the mask costs


def packed(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The same tensors, with matrices of many zeros as masks and values."""
    found: dict[str, Tensor] = {}
    for name, tensor in tensors.items():
        kept = _kept(tensor)
        if tensor.dim() != 2 or tensor.dtype != torch.float32 or int((~kept).sum()) <= _WORTH_IT * tensor.numel():
            found[name] = tensor
        else:
            bits = np.packbits(kept.flatten().numpy(), bitorder="little")
            found |= {name + _MASK: torch.from_numpy(bits), name + _VALUES: tensor[kept]}
    return found


def described(found: TensorFile, expected: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """What a file holds of the ``expected`` tensors: masks and values where it has these, of the right sizes."""
    wanted: dict[str, Tensor] = {}
    for name, tensor in expected.items():
        if name in found.names or name + _VALUES not in found.names:
            wanted[name] = tensor
            continue
        shape = found.shape(name + _VALUES)
        values = shape[0] if len(shape) == 1 and shape[0] <= tensor.numel() else tensor.numel()
        wanted[name + _MASK] = torch.empty(-(-tensor.numel() // 8), dtype=torch.uint8, device="meta")
        wanted[name + _VALUES] = torch.empty(values, dtype=tensor.dtype, device="meta")
    return wanted


def unpacked(found: TensorFile, expected: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The ``expected`` tensors of a file that was checked. Raises ModelError where a mask and its values disagree."""
    return {
        name: found.tensor(name) if name in found.names else _unpacked(found, name, tensor)
        for name, tensor in expected.items()
    }


def _unpacked(found: TensorFile, name: str, like: Tensor) -> Tensor:
    mask, values = found.tensor(name + _MASK), found.tensor(name + _VALUES)
    bits = np.unpackbits(mask.numpy(), bitorder="little").astype(bool)
    kept = torch.from_numpy(bits[: like.numel()])
    if int(bits.sum()) != len(values) or int(kept.sum()) != len(values):
        raise ModelError(
            f"{found.path}: {name} has {len(values):,} numbers and a mask of {int(bits.sum()):,}; copy the model again"
        )
    tensor = torch.zeros(like.numel(), dtype=like.dtype)
    tensor[kept] = values
    return tensor.view(like.shape)


def _kept(tensor: Tensor) -> Tensor:
    """Which numbers are not 0; -0 is kept, so that what is read back is the same to the bit."""
    return (tensor != 0) | torch.signbit(tensor) if tensor.is_floating_point() else tensor != 0
