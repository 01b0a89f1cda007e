"""A product with one tensor at every step of a recurrence, whose gradient is taken once.

Autograd would make a gradient of the tensor's size at each step and add them up. Here every use only
notes its input and the gradient that came back; when all have, the gradient of the tensor is one product
over all steps together: the same sum, from one large operation in place of many small ones.

Make such a product at the beginning of a loop and throw it away behind it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import torch
from torch import Tensor
from torch.autograd import Function

from nmt_core.layers.packed_product import packed

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
