"""A GPU that is not there: tensors that say they are on one, while a CPU does the work.

What runs here with the right numbers has every tensor on the right device, which a CPU alone would never
notice: an operation of tensors on both sides is an error, as it is on a GPU. It keeps a list of the lines
where the program waits for the GPU, and of those that copy from memory that is not pinned.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Self

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import return_and_correct_aliasing
from torch.utils._pytree import tree_flatten, tree_map_only

from tests.gpu_waits import Reason, Wait, reads_values, wait_at_the_caller

DEVICE = torch.device("cuda:0")
_seen: list[Wait] = []
_pinned: list[Tensor] = []  # kept, so that no other tensor gets their memory


class _OnGPU(Tensor):
    """A tensor held by the CPU that says it is on a GPU, and whose number no program reads without notice.

    To PyTorch's own code it is a tensor on the CPU, since without a GPU there is no driver for gradients.
    """

    held: Tensor
    device = DEVICE
    is_cuda = True
    is_cpu = False

    @staticmethod
    def __new__(cls, held: Tensor) -> Self:
        made: Self = Tensor._make_wrapper_subclass(
            cls,
            held.shape,
            strides=held.stride(),
            storage_offset=held.storage_offset(),
            dtype=held.dtype,
            requires_grad=held.requires_grad,
        )
        made.held = held.detach()
        return made

    def __repr__(self) -> str:
        return f"_OnGPU({self.held})"

    @classmethod
    def __torch_dispatch__(
        cls, func: Any, types: Any, args: Sequence[Any] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Do it on the CPU, as long as all tensors are where a GPU needs them."""
        kwargs = kwargs or {}
        name = func.overloadpacket.__name__
        _check_devices(func, (args, kwargs))
        if reads_values(name, args, kwargs):
            _note("read", name)
        if func is torch.ops.aten.mm.dtype:  # which PyTorch has for GPUs alone
            *factors, dtype = args
            func, args = torch.ops.aten.mm.default, tuple(factor.to(dtype) for factor in factors)
        found = func(*_unwrapped(args), **_unwrapped(kwargs))
        given = [leaf for leaf in tree_flatten((args, kwargs))[0] if isinstance(leaf, Tensor)]
        with torch.inference_mode(all(one.is_inference() for one in given)):  # a view is what it is of
            wrapped = tree_map_only(Tensor, _OnGPU, found)
        return return_and_correct_aliasing(func, args, kwargs, wrapped)


class PretendedGPU(TorchFunctionMode):
    """While it is entered, whatever is asked for on ``cuda`` is made on the pretended one."""

    def __enter__(self) -> Self:
        _seen.clear()
        _pinned.clear()
        super().__enter__()
        return self

    @property
    def seen(self) -> list[Wait]:
        """Every wait, and every copy from memory that is not pinned, in order."""
        return list(_seen)

    @property
    def waits(self) -> int:
        """How often the program waited for the GPU."""
        return sum(wait.reason != "pageable" for wait in _seen)

    def __torch_function__(
        self, func: Any, types: Any, args: Sequence[Any] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """What is wished for on the GPU is made on the CPU and put there."""
        kwargs = dict(kwargs or {})
        if func is torch._has_compatible_shallow_copy_type:
            return False  # so that Module.to makes new parameters
        if func in _BY_HAND:
            return _BY_HAND[func](*args, **kwargs)
        if kwargs.get("pin_memory"):
            return _pin(func(*args, **{**kwargs, "pin_memory": False}))
        if not _is_gpu(kwargs.get("device")):
            return func(*args, **kwargs)
        if func in (torch.tensor, torch.as_tensor, torch.asarray):
            _note("copy", func.__name__)
        found = func(*args, **{**kwargs, "device": "cpu"})
        return found if isinstance(found, _OnGPU) else _OnGPU(found)


def _to(tensor: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """``tensor.to(...)``."""
    given = (*args, *kwargs.values())
    device = next((torch.device(one) for one in given if isinstance(one, str | torch.device)), None)
    like = next((one for one in given if isinstance(one, Tensor)), None)
    dtype = next((one for one in given if isinstance(one, torch.dtype)), tensor.dtype if like is None else like.dtype)
    to_gpu = _is_gpu(like if device is None else device) if device or like is not None else _is_gpu(tensor)
    if to_gpu == isinstance(tensor, _OnGPU):
        return tensor.to(dtype)
    if not to_gpu:
        return _cpu(tensor).to(dtype)
    non_blocking = kwargs.get("non_blocking", next((one for one in args if isinstance(one, bool)), False))
    _note_copy_to_gpu("to", tensor, non_blocking=non_blocking)
    return _OnGPU(tensor.detach().to(dtype, copy=True))


def _cpu(tensor: Tensor) -> Tensor:
    """``tensor.cpu()``."""
    if not isinstance(tensor, _OnGPU):
        return tensor.cpu()
    _note("read", "cpu")
    return tensor.held.clone()


def _tolist(tensor: Tensor) -> Any:
    """``tensor.tolist()``."""
    if not isinstance(tensor, _OnGPU):
        return tensor.tolist()
    _note("read", "tolist")
    return tensor.held.tolist()


def _copy(target: Tensor, source: Tensor, non_blocking: bool = False) -> Tensor:
    """``target.copy_(source)``, on one device or from one to the other."""
    if isinstance(target, _OnGPU) == isinstance(source, _OnGPU):
        return target.copy_(source)
    if isinstance(target, _OnGPU):
        _note_copy_to_gpu("copy_", source, non_blocking=non_blocking)
        return target.copy_(_OnGPU(source))
    if not (non_blocking and _is_pinned(target)):
        _note("read", "copy_")
    return target.copy_(_unwrapped(source))


def _embedding_bag(
    words: Tensor, table: Tensor, *args: Any, per_sample_weights: Tensor | None = None, **kwargs: Any
) -> Tensor:
    """``embedding_bag`` of bags of one size, whose offsets PyTorch makes on the device by name."""
    if isinstance(words, _OnGPU) and words.dim() == 2:
        kwargs["offsets"] = _OnGPU(torch.arange(0, words.numel(), words.shape[1]))
        words = words.flatten()
        per_sample_weights = None if per_sample_weights is None else per_sample_weights.flatten()
    return F.embedding_bag(words, table, *args, per_sample_weights=per_sample_weights, **kwargs)


def _lstm(inputs: Tensor, states: Sequence[Tensor], *args: Any) -> Any:
    """``torch.lstm``, which is cuDNN's on a GPU."""
    if not isinstance(inputs, _OnGPU):
        return torch.lstm(inputs, states, *args)
    if not all(state.is_contiguous() for state in states):
        raise RuntimeError("rnn: hx is not contiguous")  # as cuDNN says it
    before = torch._C._get_mkldnn_enabled()
    torch._C._set_mkldnn_enabled(False)  # it would make biases on the CPU
    try:
        return torch.lstm(inputs, states, *args)
    finally:
        torch._C._set_mkldnn_enabled(before)


_BY_HAND: dict[Any, Callable[..., Any]] = {
    Tensor.to: _to,
    Tensor.cpu: _cpu,
    Tensor.cuda: lambda tensor, device="cuda", non_blocking=False: _to(tensor, device, non_blocking=non_blocking),
    Tensor.tolist: _tolist,
    Tensor.copy_: _copy,
    Tensor.pin_memory: lambda tensor: _pin(tensor.clone()),
    F.embedding_bag: _embedding_bag,
    torch.lstm: _lstm,
    Tensor.is_pinned: lambda tensor: _is_pinned(tensor),
}


def _unwrapped(values: Any) -> Any:
    return tree_map_only(_OnGPU, lambda tensor: tensor.held, values)


def _check_devices(func: Any, values: Any) -> None:
    if torch._C._current_graph_task_id() >= 0:
        return  # zeros that PyTorch makes for a backward pass do not know of this GPU
    tensors = [leaf for leaf in tree_flatten(values)[0] if isinstance(leaf, Tensor)]
    if any(not isinstance(leaf, _OnGPU) and leaf.dim() > 0 for leaf in tensors):
        raise RuntimeError(f"{func}: tensors on two devices")


def _is_gpu(device: Any) -> bool:
    return isinstance(device, _OnGPU) or (
        isinstance(device, str | torch.device) and torch.device(device).type == "cuda"
    )


def _note(reason: Reason, operation: str) -> None:
    _seen.append(wait_at_the_caller(reason, operation))


def _note_copy_to_gpu(operation: str, source: Tensor, *, non_blocking: bool) -> None:
    if not non_blocking:
        _note("copy", operation)
    elif not _is_pinned(source):
        _note("pageable", operation)


def _pin(tensor: Tensor) -> Tensor:
    _pinned.append(tensor)
    return tensor


def _is_pinned(tensor: Tensor) -> bool:
    """Whether a tensor, or an array that it shares memory with, lies in pinned memory."""
    if isinstance(tensor, _OnGPU):
        return False
    begins = ((one.untyped_storage().data_ptr(), one.untyped_storage().nbytes()) for one in _pinned)
    return any(begin <= tensor.data_ptr() < begin + size for begin, size in begins)
