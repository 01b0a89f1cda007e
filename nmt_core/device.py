"""Where tensors live and how precise they are, from the words of the command line."""

from __future__ import annotations

import functools
import multiprocessing

import torch

from nmt_core.errors import ConfigError
from nmt_core.messages import say

DTYPES = {
    "float32": torch.float32,
    "float64": torch.float64,
    "bfloat16": torch.bfloat16,
    "tf32": torch.float32,
}


def choose_device(name: str) -> torch.device:
    """``auto`` is the first GPU if there is one. Raises ConfigError for a device that is not there."""
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
    except RuntimeError as error:
        raise ConfigError(f"--device {name}: expected auto, cpu, cuda or cuda:N") from error
    if device.type == "cuda" and (device.index or 0) >= torch.cuda.device_count():
        raise ConfigError(f"--device {name}: this machine has {torch.cuda.device_count()} GPUs that torch can use")
    return device


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
    """Say once that a processor computes bfloat16 much more slowly than float32 (8 times, with AVX2 alone)."""
    if device.type == "cpu" and not has_bfloat16():
        _say_that_it_is_slow()


def has_bfloat16() -> bool:
    """Whether PyTorch's CPU library, oneDNN, has products of bfloat16 for this processor; others take far longer."""
    return torch.backends.mkldnn.is_available() and bool(torch.ops.mkldnn._is_mkldnn_bf16_supported())


@functools.cache
def _say_that_it_is_slow() -> None:
    first = multiprocessing.parent_process() is None or multiprocessing.current_process().name.endswith("-1")
    if first:  # of several processes of a job
        say("bfloat16: this processor has no instructions for it (AVX-512); float32 is several times as fast here")


def allow_tf32(device: torch.device) -> None:
    """Let this process make float32 products in TF32. Raises ConfigError where there is no GPU."""
    if device.type != "cuda":
        raise ConfigError("tf32 is for GPUs; on a CPU take float32, or bfloat16 for speed")
    torch.backends.cuda.matmul.fp32_precision = "tf32"
