"""What the last digits of numbers depend on beside the model, for signatures: precision, device, instructions, sums.

The name of a processor's instructions is not enough: MKL, which makes PyTorch's products on x86, chooses its routines
by the maker of the processor and by settings of its own (``MKL_CBWR`` and others), whatever PyTorch chooses.
So a few sums are computed, and their bits are part of the name.
"""

from __future__ import annotations

import functools
import zlib
from collections.abc import Iterator

import torch
from torch import Tensor

from nmt_core.native.kernels import name_kernels

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
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # as processes of jobs have; whether a job has one or several is no difference
    try:
        with torch.inference_mode():
            crc = 0
            for result in _results(dtype):
                crc = zlib.crc32(result.double().contiguous().numpy().tobytes(), crc)
    finally:
        torch.set_num_threads(threads)
    return f"{crc:08x}"


def _results(dtype: torch.dtype) -> Iterator[Tensor]:
    angles = torch.arange(max(_ROWS) * _SIZE, dtype=torch.int64) * 7919 % 10007  # exact everywhere
    inputs = (angles.double() / 5003.5 - 1.0).to(dtype).reshape(-1, _SIZE)
    weight = torch.cat([inputs.flip(1), inputs.flip(0)])[:_WORDS]
    for rows in _ROWS:
        yield torch.nn.functional.linear(inputs[:rows], weight)
    for function in (torch.exp, torch.tanh, torch.sigmoid):
        yield function(inputs)
    yield torch.logsumexp(inputs, 1)
    yield torch.softmax(inputs[:, :_WORDS], 1)
