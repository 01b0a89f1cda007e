"""Copies between the host and the device of a model: on a GPU one for many tensors, from pinned memory.

A copy from other memory may wait until the GPU has done all that is queued; one from pinned memory is queued itself.
On a CPU nothing is copied.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

_WORD = 8  # bytes; every tensor begins at a multiple


def on_device(device: torch.device | str, *values: Tensor | npt.NDArray[Any]) -> list[Tensor]:
    """Arrays or tensors, all on the host or all on the device, as tensors on the device; on a CPU they share memory."""
    device = torch.device(device)
    tensors = [one if isinstance(one, Tensor) else torch.from_numpy(np.ascontiguousarray(one)) for one in values]
    if device.type != "cuda" or any(tensor.is_cuda for tensor in tensors):
        return [tensor.to(device) for tensor in tensors]
    words = [-(-tensor.nbytes // _WORD) for tensor in tensors]
    pinned = torch.empty(sum(words), dtype=torch.int64, pin_memory=True)
    for tensor, part in zip(tensors, _parts(pinned, words, tensors), strict=True):
        part.copy_(tensor)
    return _parts(pinned.to(device, non_blocking=True), words, tensors)


def _parts(buffer: Tensor, words: Sequence[int], like: Sequence[Tensor]) -> list[Tensor]:
    """Where each tensor lies in the buffer, in its type and shape."""
    return [
        part.view(torch.uint8)[: one.nbytes].view(one.dtype).view(one.shape)
        for part, one in zip(buffer.split(list(words)), like, strict=True)
    ]


def queued_to_host(tensor: Tensor) -> Tensor:
    """The same tensor on the host, where its values are by the next time that its device is waited for."""
    if not tensor.is_cuda:
        return tensor
    return torch.empty(tensor.shape, dtype=tensor.dtype, pin_memory=True).copy_(tensor, non_blocking=True)


def on_host(tensors: Sequence[Tensor]) -> list[npt.NDArray[Any]]:
    """Tensors of one type as arrays of the host; the program waits for them once."""
    if not tensors or not tensors[0].is_cuda:
        return [tensor.numpy() for tensor in tensors]
    ends = itertools.accumulate(tensor.numel() for tensor in tensors[:-1])
    flat = torch.cat([tensor.flatten() for tensor in tensors]).cpu().numpy()
    return [part.reshape(one.shape) for part, one in zip(np.split(flat, list(ends)), tensors, strict=True)]
