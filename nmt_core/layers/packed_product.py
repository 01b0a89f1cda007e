"""Products with the matrices of a model in use, put in order once.

In bfloat16 PyTorch's CPU library, oneDNN, copies a matrix into the order of its routines' tiles at every product,
which for the rows of a step takes a fifth to a half of the time. Of matrices that are not trained the copy is kept
here, made at the first product, as long as the matrix is. The numbers are the same. Compiled kernels for AMX, where
they can be used (``native/tiles.py``), take half to nine tenths of that time, least for some hundred rows; numbers are
the same up to the order of sums, which in oneDNN depends on the number of rows.

Shapes: I inputs, O outputs.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, MutableMapping

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.utils.weak import WeakIdKeyDictionary

from nmt_core.native import kernels
from nmt_core.native.tiles import TiledMatrix

_LEAST = 1 << 14  # numbers of a matrix: smaller ones are in order soon enough, or are multiplied in other ways
_ROWS = 256  # for which copies are made; they serve any number

Version = tuple[object, ...]
Product = Callable[[Tensor, Tensor | None], Tensor]


class PackedMatrix:
    """``x -> x W^T + b`` for a matrix W (O, I) as it was when this was made."""

    def __init__(self, weight_OI: Tensor) -> None:
        self.version = version(weight_OI)
        self.tiled = kernels.tiles_apply_to(weight_OI)
        self._weight_OI = weight_OI.detach()  # while it is kept, no other tensor has its address
        self._product: Product = (TiledMatrix if self.tiled else _LibrarysMatrix)(self._weight_OI)

    def __call__(self, inputs: Tensor, bias_O: Tensor | None = None) -> Tensor:
        """(..., I) -> (..., O)."""
        return self._product(inputs.to(self._weight_OI.dtype), bias_O)


class _LibrarysMatrix:
    """In oneDNN's order."""

    def __init__(self, weight_OI: Tensor) -> None:
        self._packed: Tensor = torch.ops.mkldnn._reorder_linear_weight(weight_OI, _ROWS)

    def __call__(self, inputs: Tensor, bias_O: Tensor | None) -> Tensor:
        product: Tensor = torch.ops.mkldnn._linear_pointwise(inputs, self._packed, bias_O, "none", [], "")
        return product


_kept: MutableMapping[Tensor, PackedMatrix] = WeakIdKeyDictionary()


def linear(inputs: Tensor, weight_OI: Tensor, bias_O: Tensor | None = None) -> Tensor:
    """(..., I) -> (..., O), as ``torch.nn.functional.linear``."""
    matrix = packed(weight_OI)
    return F.linear(inputs, weight_OI, bias_O) if matrix is None else matrix(inputs, bias_O)


def packed(weight_OI: Tensor) -> PackedMatrix | None:
    """The product with a matrix of a model in use: None where the library has no order of its own for it."""
    if weight_OI.dtype is not torch.bfloat16 or not _of_use(weight_OI):
        return None
    found = _kept.get(weight_OI)
    if found is None or found.version != version(weight_OI) or found.tiled != kernels.tiles_apply_to(weight_OI):
        found = _kept[weight_OI] = PackedMatrix(weight_OI)
    return found


def stays(weight: Tensor) -> bool:
    """Whether a weight is not trained, and changes of it would be seen by its ``version``."""
    return not weight.requires_grad and not weight.is_inference()


def version(weight: Tensor) -> Version:
    """Another one whenever the tensor was written to, or is another."""
    return weight.data_ptr(), weight._version, weight.device, weight.dtype, weight.shape


def _of_use(weight_OI: Tensor) -> bool:
    large = weight_OI.dim() == 2 and weight_OI.numel() >= _LEAST
    in_use = not torch.is_grad_enabled() and stays(weight_OI)
    return large and in_use and weight_OI.device.type == "cpu" and _library_packs()


@functools.cache
def _library_packs() -> bool:
    return torch.backends.mkldnn.is_available() and bool(torch.ops.mkldnn._is_mkldnn_bf16_supported())
