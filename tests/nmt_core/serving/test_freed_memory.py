"""The memory of large messages is kept for the next ones, and their objects are not searched all the time."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys

import pytest

_BLOCKS = """
import resource, sys
from nmt_core.serving.freed_memory import keep_freed_memory
keep_freed_memory(int(sys.argv[1]) << 20)
for _ in range(4):
    {between}
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    blocks = [b"x" * (size << 20) for size in (20, 26, 28)]
    pages = 4096 * (resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before) >> 20
    del blocks
print(pages)
"""

_SCORES = """
    from nmt_core.interfaces import PairScore
    from nmt_core.serving.answers import score_answer
    from nmt_core.v1 import nmt_pb2 as pb
    group = pb.SourceGroup(targets=["a"] * 20_000)
    score_answer([PairScore(-1.0, 0, 1, None, None)] * 20_000, pb.ScoreRequest(groups=[group]))
"""

_OBJECTS = """
import asyncio, gc
from nmt_core.serving.server import Address, NmtServer
from nmt_core.serving.servicer import NmtServicer

async def main():
    server = NmtServer(NmtServicer(), Address(port=0))
    await server.start()
    before = gc.get_stats()[2]["collections"]
    items = [(number, []) for number in range(200_000)]  # what several requests of 20,000 items hold
    print(gc.get_stats()[2]["collections"] - before)
    await server.stop(0)

asyncio.run(main())
"""

pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or not hasattr(ctypes.CDLL(None), "mallopt"), reason="needs glibc"
)


def _taken_again(message_mib: int, between: str = "", **variables: str) -> int:
    """MiB that a process gets from the kernel for blocks of 74 MiB that it had and freed before other work."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("MALLOC_")}
    command = [sys.executable, "-c", _BLOCKS.replace("{between}", between.strip()), str(message_mib)]
    return int(subprocess.check_output(command, env=environment | variables, text=True))


def test_what_messages_leave_is_kept_for_the_next_ones() -> None:
    assert _taken_again(32) < 8


def test_many_scores_do_not_give_it_back() -> None:
    assert _taken_again(32, _SCORES) < 8


def test_what_the_environment_says_of_memory_holds() -> None:
    assert _taken_again(32, MALLOC_TRIM_THRESHOLD_="131072") > 60


def test_all_objects_are_seldom_searched_for_garbage() -> None:
    found = subprocess.check_output([sys.executable, "-c", _OBJECTS], text=True)
    assert int(found) == 0
