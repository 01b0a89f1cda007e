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


def unpacked(path: str, stored: Mapping[str, Tensor], expected: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """What a file holds, with matrices in place of masks and values. Raises ModelError where these disagree."""
    found = dict(stored)
    for name, like in expected.items():
        if name not in found and {name + _MASK, name + _VALUES} <= found.keys():
            found[name] = _unpacked(path, name, found.pop(name + _MASK), found.pop(name + _VALUES), like)
    return found


def _unpacked(path: str, name: str, mask: Tensor, values: Tensor, like: Tensor) -> Tensor:
    if mask.dtype != torch.uint8 or mask.numel() != -(-like.numel() // 8):
        raise ModelError(f"{path}: {name} has a mask of another size; copy the model again")
    bits = np.unpackbits(mask.flatten().numpy(), bitorder="little").astype(bool)
    kept = torch.from_numpy(bits[: like.numel()])
    if not int(bits.sum()) == int(kept.sum()) == values.numel():
        problem = f"{name} has {values.numel():,} numbers and a mask of {int(bits.sum()):,}"
        raise ModelError(f"{path}: {problem}; copy the model again")
    tensor = torch.zeros(like.numel(), dtype=values.dtype)
    tensor[kept] = values.flatten()
    return tensor.view(like.shape)


def _kept(tensor: Tensor) -> Tensor:
    """Which numbers are not 0; -0 is kept, so that what is read back is the same to the bit."""
    return (tensor != 0) | torch.signbit(tensor) if tensor.is_floating_point() else tensor != 0
