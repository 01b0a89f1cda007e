"""The tests that say something about a device."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator

from benchmarks.gpu.report import Row

_FILES = {
    "cuda": (
        "tests/nmt_core/inference/test_on_a_gpu.py",
        "tests/nmt_core/test_device.py",
        "tests/nmt_core/training/test_trainer.py",
        "tests/nmt_core/training/test_tasks.py",
    ),
    "cpu": ("tests/nmt_core/test_device.py",),
}
# the settings of pyproject.toml ask for plugins that such a machine need not have
_PYTEST = ("-m", "pytest", "-q", "-c", os.devnull, "--rootdir", ".", "--import-mode", "importlib",
           "-p", "no:cacheprovider", "-p", "no:warnings", "--tb", "line", "-rf")  # fmt: skip


def rows(device: str) -> Iterator[Row]:
    """Files of tests, run on the device."""
    for file in _FILES[device]:
        begin = time.monotonic()
        done = subprocess.run([sys.executable, *_PYTEST, file], capture_output=True, text=True, check=False)
        lines = done.stdout.strip().splitlines() or done.stderr.strip().splitlines() or [""]
        failed = [line.removeprefix("FAILED ")[:200] for line in lines if line.startswith(("FAILED", "ERROR"))]
        yield {"what": file, "found": lines[-1], "failed": "; ".join(failed[:8]), "seconds": time.monotonic() - begin,
               "ok": done.returncode == 0}  # fmt: skip
