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
{keep}
for _ in range(4):
    {between}
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    blocks = [b"x" * (size << 20) for size in {sizes}]
    pages = 4096 * (resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before) >> 20
    del blocks
print(pages)
"""

TENSORS = "keep_memory_of_tensors()", (100, 200)

pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or not hasattr(ctypes.CDLL(None), "mallopt"), reason="needs glibc"
)


def _taken_again(kept: tuple[str, tuple[int, ...]], between: str = "", **variables: str) -> int:
    """MiB that a process gets from the system for blocks that it had and freed before other work."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("MALLOC_", "GLIBC_"))}
    parts = {"{keep}": kept[0], "{between}": between.strip(), "{sizes}": str(kept[1])}
    program = _BLOCKS
    for name, part in parts.items():
        program = program.replace(name, part)
    return int(subprocess.check_output([sys.executable, "-c", program], env=environment | variables, text=True))


@pytest.mark.parametrize("kept", [TENSORS])
def test_what_was_freed_is_kept_for_the_next_use(kept: tuple[str, tuple[int, ...]]) -> None:
    assert _taken_again(kept) < 8


@pytest.mark.parametrize(
    "variables", [{"MALLOC_TRIM_THRESHOLD_": "131072"}, {"GLIBC_TUNABLES": "glibc.malloc.trim_threshold=131072"}]
)
@pytest.mark.parametrize("kept", [TENSORS])
def test_what_the_environment_says_of_memory_holds(
    kept: tuple[str, tuple[int, ...]], variables: dict[str, str]
) -> None:
    assert _taken_again(kept, **variables) > 60


def test_how_many_arenas_there_are_is_another_matter() -> None:
    assert _taken_again(TENSORS, MALLOC_ARENA_MAX="2") < 8
