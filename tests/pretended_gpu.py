"""A GPU that is not there: tensors that say they are on one, while a CPU does the work.

What runs here with the right numbers has every tensor on the right device, which a CPU alone would never
notice: an operation of tensors on both sides is an error, as it is on a GPU. And every time the program
would wait for the GPU (a number read back, a copy to the CPU, a result whose size depends on values) is
counted. It is for inference alone, and models must be brought there within ``torch.inference_mode``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import return_and_correct_aliasing
from torch.utils._pytree import tree_flatten, tree_map_only

DEVICE = torch.device("cuda:0")
_WAITS = ("_local_scalar_dense", "nonzero", "masked_select", "_unique2", "unique_dim", "unique_consecutive")
_ASK_FOR_A_DRIVER = (Tensor.__getitem__, Tensor.__setitem__, Tensor.__invert__, F.embedding_bag)


class _OnGPU(Tensor):
    """A tensor held by the CPU that says it is on a GPU."""

    held: Tensor
    waits = 0

    @staticmethod
    def __new__(cls, held: Tensor) -> Self:
        made: Self = Tensor._make_wrapper_subclass(
            cls,
            held.shape,
            strides=held.stride(),
            storage_offset=held.storage_offset(),
            dtype=held.dtype,
            device=DEVICE,
            requires_grad=held.requires_grad,
        )
        made.held = held
        return made

    def __repr__(self) -> str:
        return f"_OnGPU({self.held})"

    @classmethod
    def __torch_dispatch__(
        cls, func: Any, types: Any, args: Sequence[Any] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Do it on the CPU, as long as all tensors are where a GPU needs them."""
        kwargs = dict(kwargs or {})
        device = kwargs.get("device")
        name = func.overloadpacket.__name__
        if name != "copy_":
            _check_devices(func, (args, kwargs))
        to_cpu = device is not None and torch.device(device).type == "cpu"
        _OnGPU.waits += to_cpu or name in _WAITS or (name == "copy_" and not isinstance(args[0], _OnGPU))
        if device is not None:
            kwargs["device"] = torch.device("cpu")
        found = func(*tree_map_only(_OnGPU, _unwrap, args), **tree_map_only(_OnGPU, _unwrap, kwargs))
        if to_cpu:
            return found
        return return_and_correct_aliasing(func, args, kwargs, tree_map_only(Tensor, _OnGPU, found))


def _unwrap(tensor: _OnGPU) -> Tensor:
    return tensor.held


class PretendedGPU(TorchFunctionMode):
    """While it is entered, whatever is asked for on ``cuda`` is made on the pretended one."""

    def __enter__(self) -> Self:
        _OnGPU.waits = 0
        super().__enter__()
        return self

    @property
    def waits(self) -> int:
        """How often the GPU was waited for."""
        return _OnGPU.waits

    def __torch_function__(
        self, func: Any, types: Any, args: Sequence[Any] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """What is wished for on the GPU is made on the CPU and put there."""
        kwargs = dict(kwargs or {})
        if func is torch._has_compatible_shallow_copy_type:
            return False  # so that Module.to makes new parameters
        if func is Tensor.to:
            return _moved(*args, **kwargs)
        if func is Tensor.tolist and isinstance(args[0], _OnGPU):
            _OnGPU.waits += 1
            return args[0].held.tolist()
        if func in _ASK_FOR_A_DRIVER and any(isinstance(leaf, _OnGPU) for leaf in tree_flatten((args, kwargs))[0]):
            return _by_hand(func, args, kwargs)
        if not _is_gpu(kwargs.get("device")):
            return func(*args, **kwargs)
        found = func(*args, **{**kwargs, "device": "cpu"})
        return found if isinstance(found, _OnGPU) else _OnGPU(found)


def _moved(tensor: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """``tensor.to(...)``."""
    device = next((one for one in (*args, kwargs.get("device")) if _is_gpu(one)), None)
    if device is None:
        return tensor.to(*args, **kwargs)
    dtype = next((one for one in (*args, kwargs.get("dtype")) if isinstance(one, torch.dtype)), tensor.dtype)
    if isinstance(tensor, _OnGPU):
        return tensor.to(dtype)
    return _OnGPU(tensor.detach().to(dtype, copy=True))


def _by_hand(func: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    """A function of torch that would ask for a GPU's driver before it comes to ``__torch_dispatch__``."""
    _check_devices(func, (args, kwargs))
    if func is Tensor.__getitem__ or func is Tensor.__setitem__:
        places = [leaf for leaf in tree_flatten(args[1])[0] if isinstance(leaf, Tensor)]
        _OnGPU.waits += any(leaf.dtype == torch.bool for leaf in places)
    found = func(*tree_map_only(_OnGPU, _unwrap, args), **tree_map_only(_OnGPU, _unwrap, kwargs))
    return _OnGPU(found) if isinstance(found, Tensor) else found


def _check_devices(func: Any, values: Any) -> None:
    tensors = [leaf for leaf in tree_flatten(values)[0] if isinstance(leaf, Tensor)]
    if any(not isinstance(leaf, _OnGPU) and leaf.dim() > 0 for leaf in tensors):
        raise RuntimeError(f"{func}: tensors on two devices")


def _is_gpu(device: Any) -> bool:
    return isinstance(device, str | torch.device) and torch.device(device).type == "cuda"
