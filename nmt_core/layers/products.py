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
from typing import Any, cast

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.autograd import Function
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


Uses = list[tuple[Tensor, Tensor]]  # each use: its left side and the gradient of its product


class SharedMatrix:
    """``x -> x W^T`` for a matrix, or ``(m x) W^T`` for a mask m. Under autocast W is converted once."""

    def __init__(self, weight: Tensor, mask_NI: Tensor | None = None) -> None:
        self._product: Callable[[Tensor], Tensor] = packed(weight) or _SharedProduct(weight.t())
        self._mask_NI = mask_NI

    def __call__(self, inputs_NI: Tensor) -> Tensor:
        """(N, I) -> (N, O)."""
        return self._product(inputs_NI if self._mask_NI is None else inputs_NI * self._mask_NI)


class SharedRows:
    """``w -> w X`` for the rows of each of B sentences: sums of the rows, weighted."""

    def __init__(self, rows_BSC: Tensor) -> None:
        self._product = _SharedProduct(rows_BSC)

    def __call__(self, weights_BKS: Tensor) -> Tensor:
        """(B, K, S) -> (B, K, C)."""
        return self._product(weights_BKS)


class _SharedProduct:
    """``x -> x Y`` for matrices Y (..., I, O); without gradients a plain product."""

    def __init__(self, right: Tensor) -> None:
        self._uses: Uses = []
        kind = right.device.type
        dtype = torch.get_autocast_dtype(kind) if torch.is_autocast_enabled(kind) else right.dtype
        self._shared = torch.is_grad_enabled() and right.requires_grad
        self._right: Tensor = _gather(right, dtype, self._uses) if self._shared else right.to(dtype)

    def __call__(self, left: Tensor) -> Tensor:
        """(..., N, I) -> (..., N, O)."""
        if not self._shared:
            return left.to(self._right.dtype) @ self._right
        product: Tensor = _use(left, self._right, self._uses)
        return product


class _Gather(Function):
    """The tensor itself; its backward pass runs after those of all uses."""

    @staticmethod
    def forward(ctx: Any, right: Tensor, dtype: torch.dtype, uses: Uses) -> Tensor:
        ctx.uses = uses
        ctx.dtype = right.dtype
        ctx.set_materialize_grads(False)
        return right.view_as(right) if right.dtype == dtype else right.to(dtype)

    @staticmethod
    def backward(ctx: Any, *_: Any) -> Any:
        if not ctx.uses:
            return None, None, None
        inputs, gradients = zip(*ctx.uses, strict=True)
        ctx.uses.clear()
        # as a transposed product with the rows of the parameter first, which is how its gradient is stored
        return (torch.cat(gradients, dim=-2).mT @ torch.cat(inputs, dim=-2)).mT.to(ctx.dtype), None, None


class _Use(Function):
    """One product; the gradient of the right side is left to ``_Gather``."""

    @staticmethod
    def forward(ctx: Any, left: Tensor, right: Tensor, uses: Uses) -> Tensor:
        ctx.dtype = left.dtype
        left = left.to(right.dtype)
        ctx.save_for_backward(left, right)
        ctx.uses = uses
        return left @ right

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        left, right = ctx.saved_tensors
        gradient = gradients[0].to(right.dtype)
        ctx.uses.append((left, gradient))
        return (gradient @ right.mT).to(ctx.dtype), None, None


# torch does not annotate ``apply``
_gather: Callable[[Tensor, torch.dtype, Uses], Tensor] = cast(Any, _Gather).apply
_use: Callable[[Tensor, Tensor, Uses], Tensor] = cast(Any, _Use).apply
