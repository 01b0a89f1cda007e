"""A server in the process of the test, whose model answers when it is allowed to."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any, NamedTuple

import grpc

from nmt_core.base.interfaces import PairScore
from nmt_core.inference.search.config import DecodingConfig
from nmt_core.serving.limits import Limits
from nmt_core.serving.models.served import ServedModel
from nmt_core.serving.server import Address, NmtServer
from nmt_core.serving.service import NmtServicer
from nmt_core.v1 import nmt_pb2 as pb
from nmt_core.v1 import nmt_pb2_grpc


class Gate:
    """A scorer that answers while it is open, and fails for the source ``fail``."""

    signature = "fake:gate"

    def __init__(self) -> None:
        self.open, self.entered = threading.Event(), threading.Event()
        self.calls: list[int] = []

    def score(self, pairs, *, per_word: bool = False, attention: bool = False) -> list[PairScore]:
        self.calls.append(len(pairs))
        self.entered.set()
        assert self.open.wait(60)
        if any(pair.source == "fail" for pair in pairs):
            raise RuntimeError("secret details")
        return [PairScore(-float(len(pair.target))) for pair in pairs]

    def close(self) -> None:
        """Answer no more, and notice who comes."""
        self.open.clear()
        self.entered.clear()

    async def is_entered(self) -> None:
        assert await asyncio.to_thread(self.entered.wait, 30)


class Echo:
    """A decoder that has nothing to say."""

    tokens = waits = 0.0

    def admit(self, requests) -> None:
        self.keys = [key for key, _ in requests]

    def step(self):
        return [(key, []) for key in self.keys]

    def cancel(self, keys) -> None:
        pass


def gated(gate: Gate) -> Callable[[], Mapping[str, ServedModel]]:
    return lambda: {"gate": ServedModel(gate, decoder=lambda attention: Echo(), defaults=DecodingConfig())}


class Running(NamedTuple):
    """A server and what talks to it."""

    server: NmtServer
    gate: Gate
    address: str
    channel: grpc.aio.Channel
    stub: Any

    @property
    def engine(self) -> Any:
        return self.server.servicer.device.engine


@contextlib.asynccontextmanager
async def serving(
    limits: Limits | None = None,
    *,
    loads: bool = True,
    address: Address | None = None,
    tokens: Any = None,
    log: Any = None,
    **more: Any,
) -> AsyncIterator[Running]:
    """A server whose model is a gate: open, unless nothing is loaded."""
    gate = Gate()
    server = NmtServer(NmtServicer(limits=limits, **more), address or Address(port=0), tokens=tokens, log=log)
    await server.start()
    try:
        if loads:
            gate.open.set()
            await server.load(gated(gate))
        at = f"127.0.0.1:{server.port}"
        async with grpc.aio.insecure_channel(at) as channel:
            yield Running(server, gate, at, channel, nmt_pb2_grpc.NmtServiceStub(channel))
    finally:
        gate.open.set()
        await server.stop(1.0)


def one_pair(source: str = "a", target: str = "b") -> pb.ScoreRequest:
    return pb.ScoreRequest(pairs=[pb.Pair(source=source, target=target)])
