"""Memory that was freed is used again without asking the system for it."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys

import pytest

_BLOCKS = """
import resource
from nmt_core.processes import keep_memory_of_tensors
keep_memory_of_tensors()
for _ in range(4):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    blocks = [b"x" * (size << 20) for size in (100, 200)]
    pages = 4096 * (resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before) >> 20
    del blocks
print(pages)
"""


@pytest.mark.skipif(sys.platform != "linux" or not hasattr(ctypes.CDLL(None), "mallopt"), reason="needs glibc")
@pytest.mark.parametrize(
    ("variables", "is_kept"),
    [
        ({"MALLOC_ARENA_MAX": "2"}, True),  # which is another matter
        ({"MALLOC_TRIM_THRESHOLD_": "131072"}, False),
        ({"GLIBC_TUNABLES": "glibc.malloc.trim_threshold=131072"}, False),
    ],
)
def test_what_was_freed_is_kept_unless_the_environment_says_otherwise(variables: dict[str, str], is_kept: bool) -> None:
    """By the MiB that a process gets from the system for blocks that it had and freed before."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("MALLOC_", "GLIBC_"))}
    found = int(subprocess.check_output([sys.executable, "-c", _BLOCKS], env=environment | variables, text=True))
    assert found < 8 if is_kept else found > 60
