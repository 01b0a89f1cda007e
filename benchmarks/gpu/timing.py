"""Seconds, and memory at its highest, of work on a device; and precisions as the options name them."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, NamedTuple

import torch

from benchmarks.common import Products, ceilings, peak_memory
from nmt_core.device import choose_dtype

PRECISIONS = {"cuda": ("bfloat16", "float32", "tf32"), "cpu": ("float32", "bfloat16")}


class Spent(NamedTuple):
    """Seconds, and GiB: of the GPU's memory, or of the process where there is none."""

    seconds: float
    memory: float


def spent(work: Callable[[], Any]) -> Spent:
    """What it takes, without what went before."""
    on_gpu = torch.cuda.is_initialized()
    if on_gpu:
        torch.cuda.synchronize()
        torch.cuda.reset_peak_memory_stats()
    begin = time.perf_counter()
    work()
    if on_gpu:
        torch.cuda.synchronize()
    seconds = time.perf_counter() - begin
    return Spent(seconds, torch.cuda.max_memory_allocated() / 2**30 if on_gpu else peak_memory())


def of_roofline(work: Callable[[], Any], seconds: float, dtype: torch.dtype, device: str) -> float:
    """The share of the seconds that its matrix products take at the device's measured rates."""
    with Products() as products:
        work()
    return products.seconds_of_roofline(dtype, device) / seconds


def use_precision(name: str, device: str) -> torch.dtype:
    """Compute in this precision from now on; the type of parameters."""
    ceilings.cache_clear()  # those of tf32 are others than those of float32
    torch.backends.cuda.matmul.fp32_precision = "ieee"
    return choose_dtype(name, torch.device(device))
