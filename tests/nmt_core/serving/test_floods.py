"""What a connection sends without end, before any call of it is handled, costs others nothing."""

from __future__ import annotations

import asyncio
import threading
import time
from pathlib import Path

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

from tests.nmt_core.serving.in_process import serving

MIB = 1 << 20
CHECK = "/grpc.health.v1.Health/Check"


def most_memory(process: int) -> float:
    """MiB that it had at most so far."""
    lines = Path(f"/proc/{process}/status").read_text().split("\n")
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM"))


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs Linux' /proc")
def test_metadata_without_end_is_not_kept(start, folder: str, rude) -> None:
    server = start("--model", f"m={folder}")
    before = most_memory(server.process.pid)
    rude(server.address).send_metadata("/nmt_core.v1.NmtService/Translate", 400 * MIB)
    assert most_memory(server.process.pid) - before < 100  # it was up to 740


async def test_calls_that_come_all_at_once_take_nobody_elses_place(rude) -> None:
    """While the event loop is busy, calls wait in the library, which must not cancel those of others."""
    codes: list[str] = []

    async with serving(loads=False) as running:
        address, sent = running.address, threading.Event()

        def ask() -> None:
            for client in [rude(address, source="127.0.0.2") for _ in range(4)]:
                for _ in range(900):
                    client.call(CHECK)
            with grpc.insecure_channel(address) as channel:
                check = health_pb2_grpc.HealthStub(channel).Check
                calls = [check.future(health_pb2.HealthCheckRequest(), timeout=60) for _ in range(20)]
                sent.set()
                codes.extend(call.code().name for call in calls)

        asking = asyncio.create_task(asyncio.to_thread(ask))
        await asyncio.sleep(0.1)  # the library listens
        sent.wait(30)
        time.sleep(1.0)  # nothing is answered until they have arrived
        await asking
    assert codes == ["OK"] * 20
