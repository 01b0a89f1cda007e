"""Memory that was freed is used again without asking the system for it."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
from types import SimpleNamespace

import pytest

from nmt_core.processes import keep_memory_of_tensors

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
    ],
)
def test_what_was_freed_is_kept_unless_the_environment_says_otherwise(variables: dict[str, str], is_kept: bool) -> None:
    """By the MiB that a process gets from the system for blocks that it had and freed before."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("MALLOC_", "GLIBC_"))}
    found = int(subprocess.check_output([sys.executable, "-c", _BLOCKS], env=environment | variables, text=True))
    assert found < 8 if is_kept else found > 60


def test_any_setting_of_the_environment_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    called: list[tuple[int, int]] = []
    monkeypatch.setattr(ctypes, "CDLL", lambda _: SimpleNamespace(mallopt=lambda *options: called.append(options)))
    monkeypatch.delenv("GLIBC_TUNABLES", raising=False)
    names = ("trim_threshold", "mmap_threshold", "mmap_max")
    for variable in [name for name in os.environ if name.startswith("MALLOC_")]:
        monkeypatch.delenv(variable)
    for name in names:
        for variable, value in ((f"MALLOC_{name.upper()}_", "1"), ("GLIBC_TUNABLES", f"glibc.malloc.{name}=1")):
            monkeypatch.setenv(variable, value)
            keep_memory_of_tensors()
            monkeypatch.delenv(variable)
    assert called == []
    keep_memory_of_tensors()
    assert called == [(-4, 0), (-1, 2**31 - 1)]  # M_MMAP_MAX and M_TRIM_THRESHOLD of malloc.h
