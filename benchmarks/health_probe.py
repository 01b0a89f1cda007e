"""How long health calls take, asked for by a process that does nothing else.

Each round asks the server, and then a bare server of gRPC's Python library, in a process of its own, that has
nothing to do: what that one takes beside the same load belongs to the machine, the library and the asking process.
"""

from __future__ import annotations

import asyncio
import contextlib
import multiprocessing
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing.connection import Connection

import grpc
from grpc_health.v1 import health, health_pb2, health_pb2_grpc

_PAUSE = 0.02  # seconds between rounds

Taken = tuple[list[float], list[float]]
"""Seconds of the calls to the server, and of those to the bare one."""


@contextlib.contextmanager
def bare_server() -> Iterator[str]:
    """The address of one that answers health calls alone."""
    spawn = multiprocessing.get_context("spawn")
    ours, its = spawn.Pipe()
    process = spawn.Process(target=_answer_health, args=(its,), daemon=True)
    process.start()
    try:
        yield ours.recv()
    finally:
        process.terminate()
        process.join()


def _answer_health(parent: Connection) -> None:
    async def serve() -> None:
        server = grpc.aio.server()
        health_pb2_grpc.add_HealthServicer_to_server(health.aio.HealthServicer(), server)  # type: ignore[attr-defined]
        parent.send(f"localhost:{server.add_insecure_port('localhost:0')}")
        await server.start()
        await server.wait_for_termination()

    asyncio.run(serve())


class HealthProbe:
    """The asking process; ``ask`` begins, and the result is there after that time."""

    def __init__(self, server: str, bare: str) -> None:
        self._addresses = (server, bare)
        self._pool = ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn"))
        self._pool.submit(_ask, self._addresses, 0.0).result()  # the process is there, and has imported what it needs

    async def ask(self, seconds: float) -> Taken:
        """Ask for so long, each round 20 ms after the last."""
        return await asyncio.wrap_future(self._pool.submit(_ask, self._addresses, seconds))

    def close(self) -> None:
        """End the process."""
        self._pool.shutdown()


def _ask(addresses: tuple[str, str], seconds: float) -> Taken:
    taken: Taken = ([], [])

    async def check() -> None:
        async with grpc.aio.insecure_channel(addresses[0]) as server, grpc.aio.insecure_channel(addresses[1]) as bare:
            stubs = [health_pb2_grpc.HealthStub(channel) for channel in (server, bare)]
            end = time.perf_counter() + seconds
            while time.perf_counter() < end:
                for stub, into in zip(stubs, taken, strict=True):
                    begin = time.perf_counter()
                    await stub.Check(health_pb2.HealthCheckRequest())
                    into.append(time.perf_counter() - begin)
                await asyncio.sleep(_PAUSE)

    asyncio.run(check())
    return taken
