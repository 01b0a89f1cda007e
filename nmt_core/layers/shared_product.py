"""A product with one matrix at every step of a recurrence, whose gradient is taken once.

Autograd would make a matrix-sized gradient at each step and add them up. Here every use only notes
its input and the gradient that came back; when all have, the gradient of the matrix is one product
over all steps together: the same sum, from one large operation in place of many small ones.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.autograd import Function

Uses = list[tuple[Tensor, Tensor]]  # each use: its input and the gradient of its output


class SharedMatrix:
    """``x -> x W^T`` for a matrix used many times before one backward pass.

    Make one at the beginning of a loop and throw it away behind it. Under autocast the matrix is
    turned into the lower precision once. Without gradients it is ``F.linear``.
    """

    def __init__(self, weight: Tensor) -> None:
        self._uses: Uses = []
        kind = weight.device.type
        dtype = torch.get_autocast_dtype(kind) if torch.is_autocast_enabled(kind) else weight.dtype
        self._shared = torch.is_grad_enabled() and weight.requires_grad
        self._weight: Tensor = _gather(weight, dtype, self._uses) if self._shared else weight.to(dtype)

    def __call__(self, inputs_NI: Tensor) -> Tensor:
        """(N, I) -> (N, O)."""
        if not self._shared:
            return F.linear(inputs_NI.to(self._weight.dtype), self._weight)
        product: Tensor = _use(inputs_NI, self._weight, self._uses)
        return product


class _Gather(Function):
    """The matrix itself; its backward pass runs after those of all uses."""

    @staticmethod
    def forward(ctx: Any, weight: Tensor, dtype: torch.dtype, uses: Uses) -> Tensor:
        ctx.uses = uses
        ctx.dtype = weight.dtype
        ctx.set_materialize_grads(False)
        return weight.view_as(weight) if weight.dtype == dtype else weight.to(dtype)

    @staticmethod
    def backward(ctx: Any, *_: Any) -> Any:
        if not ctx.uses:
            return None, None, None
        inputs, gradients = zip(*ctx.uses, strict=True)
        ctx.uses.clear()
        return (torch.cat(gradients).t() @ torch.cat(inputs)).to(ctx.dtype), None, None


class _Use(Function):
    """One product; the gradient of the matrix is left to ``_Gather``."""

    @staticmethod
    def forward(ctx: Any, inputs_NI: Tensor, weight: Tensor, uses: Uses) -> Tensor:
        ctx.dtype = inputs_NI.dtype
        inputs_NI = inputs_NI.to(weight.dtype)
        ctx.save_for_backward(inputs_NI, weight)
        ctx.uses = uses
        return F.linear(inputs_NI, weight)

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        inputs_NI, weight = ctx.saved_tensors
        gradient_NO = gradients[0].to(weight.dtype)
        ctx.uses.append((inputs_NI, gradient_NO))
        return (gradient_NO @ weight).to(ctx.dtype), None, None


# torch does not annotate ``apply``
_gather: Callable[[Tensor, torch.dtype, Uses], Tensor] = cast(Any, _Gather).apply
_use: Callable[[Tensor, Tensor, Uses], Tensor] = cast(Any, _Use).apply
