"""The device and its measured rates."""

from __future__ import annotations

import os
from collections.abc import Iterator

import torch

from benchmarks.common import ceilings, machine
from benchmarks.gpu.report import Row
from benchmarks.gpu.timing import PRECISIONS, use_precision


def rows(device: str) -> Iterator[Row]:
    """The device; operations a second of a large product, bytes a second of a large copy (read and written)."""
    if device == "cuda" and not torch.cuda.is_available():
        yield {"what": "no GPU that PyTorch can use", "ok": False}
        return
    yield {"what": machine(), "value": f"CUDA {torch.version.cuda}, cuDNN {torch.backends.cudnn.version()}"}
    if device == "cuda":
        free, total = torch.cuda.mem_get_info()
        yield {"what": "GPU memory, free of all, GiB", "value": f"{free / 2**30:.1f} of {total / 2**30:.1f}"}
    yield {"what": "threads of PyTorch", "value": f"{torch.get_num_threads()} of {os.cpu_count()} cores"}
    for precision in PRECISIONS[device]:
        operations, transfer = ceilings(use_precision(precision, device), device)
        yield {"what": f"{precision}, TFLOP/s", "value": operations / 1e12}
        yield {"what": f"{precision}, copy, GB/s", "value": transfer / 1e9}
