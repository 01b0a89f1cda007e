"""The objects of a server are not searched for garbage all the time."""

from __future__ import annotations

import subprocess
import sys

_OBJECTS = """
import asyncio, gc
from nmt_core.serving.server import Address, NmtServer
from nmt_core.serving.service import NmtServicer

async def main():
    server = NmtServer(NmtServicer(), Address(port=0))
    await server.start()
    before = gc.get_stats()[2]["collections"]
    items = [(number, []) for number in range(200_000)]  # what several requests of 20,000 items hold
    print(gc.get_stats()[2]["collections"] - before)
    await server.stop(0)

asyncio.run(main())
"""


def test_all_objects_are_seldom_searched_for_garbage() -> None:
    found = subprocess.check_output([sys.executable, "-c", _OBJECTS], text=True)
    assert int(found) == 0
