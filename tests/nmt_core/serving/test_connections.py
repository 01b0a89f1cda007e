"""Connections: how many there may be, how long they last, and what one may send before a call of it is handled."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import threading
import time
from pathlib import Path

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

from nmt_core.v1 import nmt_pb2 as pb
from tests.nmt_core.serving.http2 import RudeClient
from tests.nmt_core.serving.in_process import serving

MOST = 6
_MAX_CONCURRENT_STREAMS = 3  # number of a setting (RFC 9113, 6.5.2)


@pytest.fixture(scope="module")
def short_lived(start, folder: str):
    """A server whose connections may be idle for 300 s and are asked to be opened anew after 2."""
    return start("--model", f"m={folder}", "--limit", "age=2", "--limit", f"connections={MOST}")


def hung_up_on(client: socket.socket) -> bool:
    client.settimeout(0.5)
    try:
        return client.recv(1) == b""
    except (TimeoutError, ConnectionError) as error:
        return isinstance(error, ConnectionError)


def test_a_connection_has_an_age_and_its_calls_notice_nothing(short_lived) -> None:
    with RudeClient(short_lived.address) as client:
        assert client.seconds_until_going_away() < 60
    request = pb.ScoreRequest(pairs=[pb.Pair(source="un", target="one")])
    begin = time.monotonic()
    while time.monotonic() - begin < 4.5:
        assert short_lived.stub.Score(request, timeout=20).scores[0].log_prob < 0


def test_calls_of_one_connection_are_limited(short_lived) -> None:
    with RudeClient(short_lived.address) as client:
        while not client.settings:
            assert client.listen(10.0)
        assert client.settings[_MAX_CONCURRENT_STREAMS] == 1000


def test_connections_above_the_limit_are_hung_up_on(short_lived) -> None:
    """The last test with this server, which notices only some time later that they were closed."""
    host, _, port = short_lived.address.rpartition(":")
    with grpc.insecure_channel(short_lived.address) as channel:
        health = health_pb2_grpc.HealthStub(channel)
        health.Check(health_pb2.HealthCheckRequest())
        with contextlib.ExitStack() as stack:
            clients = [
                stack.enter_context(socket.create_connection((host, int(port)), timeout=10)) for _ in range(MOST + 4)
            ]
            assert sum(map(hung_up_on, clients)) >= 5  # of the eleven, the channel's included
            health.Check(health_pb2.HealthCheckRequest())


CHECK = "/grpc.health.v1.Health/Check"


def most_memory(process: int) -> float:
    """MiB that it had at most so far."""
    lines = Path(f"/proc/{process}/status").read_text().split("\n")
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM"))


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs Linux' /proc")
def test_metadata_without_end_is_not_kept(short_lived, rude) -> None:
    Path(f"/proc/{short_lived.process.pid}/clear_refs").write_text("5")  # forgets what it had at most
    before = most_memory(short_lived.process.pid)
    left = 400 << 20
    while left > 0:
        left -= rude(short_lived.address).send_metadata("/nmt_core.v1.NmtService/Translate", left)
    assert most_memory(short_lived.process.pid) - before < 100  # it was up to 740


async def test_calls_that_come_all_at_once_take_nobody_elses_place(rude) -> None:
    """While the event loop is busy, calls wait in the library, which must not cancel other clients' calls."""
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
