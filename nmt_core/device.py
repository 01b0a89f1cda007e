"""Where tensors live and how precise they are, from the words of the command line; copies between host and device."""

from __future__ import annotations

import functools
import itertools
import multiprocessing
import platform
import re
import zlib
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from nmt_core.base.errors import ConfigError
from nmt_core.base.messages import say
from nmt_core.native.kernels import name_kernels

DTYPES = {
    "float32": torch.float32,
    "float64": torch.float64,
    "bfloat16": torch.bfloat16,
    "tf32": torch.float32,
}

_TOKENS_ON_CPU = 1000
_WORD = 8  # bytes; every tensor of a copy begins at a multiple
_MEMORY_OF_TOKEN = 4 << 20  # bytes: of a beam of 12 and 500,000 words; with 30,000 words it takes a tenth


def choose_device(name: str) -> torch.device:
    """``auto`` is the first GPU if there is one. Raises ConfigError for a device that is not there."""
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    found = re.fullmatch(r"cpu|cuda(?::(\d{1,3}))?", name, re.ASCII)
    if found is None:
        raise ConfigError(f"--device {name}: expected auto, cpu, cuda or cuda:N")
    if name != "cpu" and int(found[1] or 0) >= torch.cuda.device_count():
        raise ConfigError(f"--device {name}: this machine has {torch.cuda.device_count()} GPUs that torch can use")
    return torch.device(name)


def usual_batch_tokens(device: torch.device) -> int:
    """How many source words are searched together: as many as the GPU has memory for, or the smallest of all GPUs.

    Last digits depend on it. So it follows from the whole memory, which is the same at every start, not from what is
    free: all processes of a job, and a job that goes on, have the same number.
    """
    if device.type == "cpu":
        return _TOKENS_ON_CPU
    numbers = range(torch.cuda.device_count()) if device.index is None else [device.index]
    memory = min(int(torch.cuda.get_device_properties(number).total_memory) for number in numbers)
    return max(_TOKENS_ON_CPU, memory // _MEMORY_OF_TOKEN)


def choose_dtype(name: str, device: torch.device) -> torch.dtype:
    """The type of parameters. Raises ConfigError for an unknown precision, or one that ``device`` does not have.

    ``tf32`` is float32 whose products a GPU makes of numbers with ten bits behind the point; from then on
    this is so in the whole process.
    """
    if name not in DTYPES:
        raise ConfigError(f"--dtype {name}: expected {', '.join(DTYPES)}")
    if name == "tf32":
        allow_tf32(device)
    if name == "bfloat16":
        say_if_slow(device)
    return DTYPES[name]


def say_if_slow(device: torch.device) -> None:
    """Say once that a processor computes bfloat16 more slowly than float32."""
    if device.type == "cpu" and not has_bfloat16():
        _say_that_it_is_slow()


def has_bfloat16() -> bool:
    """Whether this processor has instructions for products of bfloat16, and PyTorch's library, oneDNN, uses them.

    On x86 oneDNN imitates them with AVX-512 alone, in 1.3 to 1.8 times the time that float32 takes.
    """
    if not torch.backends.mkldnn.is_available() or not torch.ops.mkldnn._is_mkldnn_bf16_supported():
        return False
    on_x86 = platform.machine() in ("x86_64", "AMD64")
    return not on_x86 or torch.cpu._is_avx512_bf16_supported() or torch.cpu._is_amx_tile_supported()


@functools.cache
def _say_that_it_is_slow() -> None:
    first = multiprocessing.parent_process() is None or multiprocessing.current_process().name.endswith("-1")
    if first:  # of several processes of a job
        say("bfloat16: this processor has no instructions for it (AVX512-BF16, AMX); float32 is faster here")


def allow_tf32(device: torch.device) -> None:
    """Let this process make float32 products in TF32. Raises ConfigError where there is no GPU."""
    if device.type != "cuda":
        raise ConfigError("tf32 is for GPUs; on a CPU take float32, or bfloat16 for speed")
    torch.backends.cuda.matmul.fp32_precision = "tf32"


_SIZE, _WORDS = 1024, 100  # of a product: sums of so many terms, in more than one block
_ROWS = (1, 3, 16, 50)  # routines differ by rows


def name_arithmetic(parameter: Tensor) -> str:
    """Device, instructions, some sums and version of torch of a model with such parameters.

    Where there are compiled kernels for them, these are named, too.
    """
    if parameter.is_cuda:
        kind = torch.cuda.get_device_name(parameter.device).replace(" ", "_")
        return f"device:cuda|gpu:{kind}|torch:{torch.__version__}"
    capability = torch.backends.cpu.get_cpu_capability()
    instructions = f"cpu:{capability}|sums:{_sums(parameter.dtype)}{name_kernels(parameter)}"
    return f"device:{parameter.device.type}|{instructions}|torch:{torch.__version__}"


def name_precision(parameter: Tensor) -> str:
    """How precisely a model with such parameters computes: float32, float64, bfloat16 or tf32."""
    if parameter.is_cuda and parameter.dtype == torch.float32 and torch.backends.cuda.matmul.fp32_precision == "tf32":
        return "tf32"
    return str(parameter.dtype).removeprefix("torch.")


@functools.cache
def _sums(dtype: torch.dtype) -> str:
    """CRC-32 of the bits of products and functions of fixed numbers, by one thread."""
    angles = torch.arange(max(_ROWS) * _SIZE, dtype=torch.int64) * 7919 % 10007  # exact everywhere
    inputs = (angles.double() / 5003.5 - 1.0).to(dtype).reshape(-1, _SIZE)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # as processes of jobs have; whether a job has one or several is no difference
    try:
        with torch.inference_mode():
            weight = torch.cat([inputs.flip(1), inputs.flip(0)])[:_WORDS]
            results = [torch.nn.functional.linear(inputs[:rows], weight) for rows in _ROWS]
            results += [function(inputs) for function in (torch.exp, torch.tanh, torch.sigmoid)]
            results += [torch.logsumexp(inputs, 1), torch.softmax(inputs[:, :_WORDS], 1)]
            contents = [result.double().contiguous().numpy().tobytes() for result in results]
    finally:
        torch.set_num_threads(threads)
    return f"{zlib.crc32(b''.join(contents)):08x}"


def on_device(device: torch.device | str, *values: Tensor | npt.NDArray[Any]) -> list[Tensor]:
    """Arrays or tensors, all on the host or all on the device, as tensors on the device; on a CPU they share memory.

    On a GPU it is one copy from pinned memory, which is queued; one from other memory may wait for all that is queued.
    """
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
