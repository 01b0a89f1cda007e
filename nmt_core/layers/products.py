"""Products with the matrices of a model.

``linear`` is the product with a parameter, ``Linear`` the layer of it. The parameters of a model that is loaded for
inference are *frozen* (``freeze``): nothing changes them, so the matrices that many steps multiply with are put in
order once. In bfloat16 PyTorch's CPU library, oneDNN, copies a matrix into the order of its routines' tiles at every
product, which for the rows of a step takes a fifth to a half of the time; the numbers are the same. Compiled kernels
for AMX, where they can be used (``native/tiles.py``), take half to nine tenths of that time; numbers are the same up to
the order of sums, which in oneDNN depends on the number of rows.

``SharedProduct`` is the product with one matrix at all steps of a loop: its gradient is one product.

Shapes: I inputs, O outputs.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.autograd import Function

from nmt_core.layers.init import DEVIATION, Initialiser, Layer
from nmt_core.native import kernels
from nmt_core.native.tiles import TiledMatrix

_LEAST = 1 << 14  # numbers of a matrix: smaller ones are in order soon enough, or are multiplied in other ways
_ROWS = 256  # for which oneDNN's copies are made; they serve any number

Product = Callable[[Tensor], Tensor]


class FrozenParameter(nn.Parameter):
    """A parameter of a model in use, whose numbers stay as they are.

    What products give after its numbers were written to (``copy_``, ``.data``, ``Module.to``) is undefined.
    """


class OrderedMatrix(FrozenParameter):
    """A matrix that keeps its copies in order: a large one in bfloat16, on a CPU."""

    @functools.cached_property
    def tiled(self) -> TiledMatrix:
        """In the order of AMX's tiles."""
        return TiledMatrix(self.detach())

    @functools.cached_property
    def reordered(self) -> Tensor:
        """In the order of oneDNN's routines."""
        matrix: Tensor = torch.ops.mkldnn._reorder_linear_weight(self.detach(), _ROWS)
        return matrix

    def times(self, inputs: Tensor, bias_O: Tensor | None = None) -> Tensor:
        """``x W^T + b`` with a matrix (O, I) in order, (..., I) -> (..., O)."""
        inputs = inputs.to(self.dtype)
        if kernels.apply_to(self, tiles=True):
            return self.tiled(inputs, bias_O)
        product: Tensor = torch.ops.mkldnn._linear_pointwise(inputs, self.reordered, bias_O, "none", [], "")
        return product


def freeze(model: nn.Module) -> None:
    """From now on nothing changes the parameters of the model, which is in use and not in training."""
    for parameter in model.eval().requires_grad_(False).parameters():
        parameter.__class__ = _kind_of(parameter)  # in its place, so that what is tied stays tied
    for module in model.modules():
        vars(module)["register_parameter"] = _reject  # instead of the module's own, which replaces


def _reject(name: str, parameter: nn.Parameter | None) -> None:
    raise RuntimeError(f"{name} is frozen: change parameters before the model is in use")


def _kind_of(tensor: Tensor) -> type[FrozenParameter]:
    large = tensor.dtype is torch.bfloat16 and tensor.dim() == 2 and tensor.numel() >= _LEAST
    return OrderedMatrix if large and tensor.device.type == "cpu" and _library_orders() else FrozenParameter


def linear(inputs: Tensor, weight_OI: Tensor, bias_O: Tensor | None = None) -> Tensor:
    """(..., I) -> (..., O), as ``torch.nn.functional.linear``."""
    if isinstance(weight_OI, OrderedMatrix) and not torch.is_grad_enabled():
        return weight_OI.times(inputs, bias_O)
    return F.linear(inputs, weight_OI, bias_O)


class Linear(Layer):
    """A product with a matrix, and a bias of the first ``biases`` outputs (None: of all).

    ``deviation`` is the standard deviation of the matrix' first values in the papers.
    """

    def __init__(self, inputs: int, outputs: int, *, biases: int | None = None, deviation: float = DEVIATION) -> None:
        super().__init__()
        biases = outputs if biases is None else biases
        self.weight = nn.Parameter(torch.empty(outputs, inputs))
        self.bias = nn.Parameter(torch.empty(biases)) if biases else None
        self.unbiased, self.deviation = outputs - biases, deviation

    def initialise(self, initialiser: Initialiser) -> None:
        """Normal; the bias 0."""
        initialiser.matrix(self.weight, deviation=self.deviation)
        if self.bias is not None:
            initialiser.constant(self.bias, 0.0)

    def forward(self, inputs: Tensor) -> Tensor:
        """(..., I) -> (..., O)."""
        if self.bias is None:
            return self.finish(linear(inputs, self.weight))
        return linear(inputs, self.weight, F.pad(self.bias, (0, self.unbiased)) if self.unbiased else self.bias)

    def finish(self, product: Tensor) -> Tensor:
        """From the product with ``weight`` to what ``forward`` gives, (..., O) -> (..., O)."""
        return product if self.bias is None else product + F.pad(self.bias, (0, self.unbiased))


def rows_of(table: Tensor, rows_C: Tensor) -> Tensor:
    """Some rows; those of a frozen parameter are frozen, too."""
    some = table[rows_C]
    return _kind_of(some)(some, requires_grad=False) if isinstance(table, FrozenParameter) else some


@functools.cache
def _library_orders() -> bool:
    return torch.backends.mkldnn.is_available() and bool(torch.ops.mkldnn._is_mkldnn_bf16_supported())


def shared_matrix(weight_OI: Tensor) -> Product:
    """``x -> x W^T`` for one loop; (N, I) -> (N, O)."""
    return SharedProduct(weight_OI.t()) if torch.is_grad_enabled() else functools.partial(linear, weight_OI=weight_OI)


Uses = list[tuple[Tensor, Tensor]]  # each use: its left side and the gradient of its product


class SharedProduct:
    """``x -> x Y`` for matrices Y (..., I, O) at all steps of a loop; without gradients a plain product.

    Under autocast Y is converted once. Y may be the rows of each of B sentences, of which x are weights.
    """

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
