"""Connections: how many there may be, how long they last, and how many calls one may have."""

from __future__ import annotations

import contextlib
import socket
import time

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

from nmt_core.v1 import nmt_pb2 as pb
from nmt_core.v1 import nmt_pb2_grpc
from tests.nmt_core.serving.http2 import RudeClient

MOST = 6
_MAX_CONCURRENT_STREAMS = 3  # number of a setting (RFC 9113, 6.5.2)


@pytest.fixture(scope="module")
def short_lived(start, folder: str):
    """A server whose connections may be idle for 300 s and are asked to be opened anew after 2."""
    return start("--model", f"m={folder}", "--limit", "age=2", "--limit", f"connections={MOST}")


def seconds_until_going_away(address: str) -> float:
    begin = time.monotonic()
    with RudeClient(address) as client:
        while not client.going_away and time.monotonic() - begin < 60:
            client.listen(1.0)
    return time.monotonic() - begin


def hung_up_on(client: socket.socket) -> bool:
    client.settimeout(0.5)
    try:
        return client.recv(1) == b""
    except (TimeoutError, ConnectionError) as error:
        return isinstance(error, ConnectionError)


def test_a_connection_without_calls_is_given_up(start, folder: str) -> None:
    server = start("--model", f"m={folder}", "--limit", "idle=1")  # the age is an hour
    assert 0.5 < seconds_until_going_away(server.address) < 60


def test_a_connection_has_an_age_and_its_calls_notice_nothing(short_lived) -> None:
    assert seconds_until_going_away(short_lived.address) < 60
    request = pb.ScoreRequest(pairs=[pb.Pair(source="un", target="one")])
    with grpc.insecure_channel(short_lived.address) as channel:
        stub = nmt_pb2_grpc.NmtServiceStub(channel)
        begin = time.monotonic()
        while time.monotonic() - begin < 6:
            assert stub.Score(request, timeout=20).scores[0].log_prob < 0


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
