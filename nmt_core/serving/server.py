"""The gRPC server: address, health, reflection, and how it begins and ends."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_health.v1._async import HealthServicer
from grpc_reflection.v1alpha import reflection

from nmt_core.errors import NmtError
from nmt_core.serving.calls import SERVICE, Calls
from nmt_core.serving.security import Certificates
from nmt_core.serving.servicer import Load, NmtServicer
from nmt_core.v1 import nmt_pb2_grpc


@dataclass(frozen=True)
class Address:
    """Where to listen; without certificates the connection is not encrypted."""

    host: str = "127.0.0.1"
    port: int = 50551
    certificates: Certificates | None = None
    reflection: bool = True


class NmtServer:
    """A server on one address. Raises NmtError when it cannot listen there.

    ``start`` answers (NOT_SERVING, UNAVAILABLE), ``load`` makes it ready, ``stop`` drains and ends it.
    """

    def __init__(self, servicer: NmtServicer, address: Address, calls: Calls | None = None) -> None:
        limits = servicer.limits
        options = [
            ("grpc.so_reuseport", 0),  # else a second server on the port starts, and gets half the calls
            ("grpc.max_receive_message_length", limits.message_bytes),
            ("grpc.max_send_message_length", limits.message_bytes),
            ("grpc.http2.min_ping_interval_without_data_ms", 30_000),
            ("grpc.keepalive_permit_without_calls", 1),
        ]
        self.servicer = servicer
        self.health = HealthServicer()
        self._server = grpc.aio.server(options=options, interceptors=[calls or Calls(limits)])
        nmt_pb2_grpc.add_NmtServiceServicer_to_server(servicer, self._server)
        health_pb2_grpc.add_HealthServicer_to_server(self.health, self._server)
        if address.reflection:
            names = (SERVICE, health_pb2.DESCRIPTOR.services_by_name["Health"].full_name, reflection.SERVICE_NAME)
            reflection.enable_server_reflection(names, self._server)
        self.port = self._listen(address)

    def _listen(self, address: Address) -> int:
        place = f"[{address.host}]:{address.port}" if ":" in address.host else f"{address.host}:{address.port}"
        try:
            if address.certificates is None:
                port: int = self._server.add_insecure_port(place)
            else:
                port = self._server.add_secure_port(place, address.certificates.credentials())
        except RuntimeError as error:
            raise NmtError(
                f"cannot listen on {place}; is another server running there? choose another --port, or check --host"
            ) from error
        return port

    async def start(self) -> None:
        """Begin to answer, health with NOT_SERVING."""
        await self._set_health(health_pb2.HealthCheckResponse.NOT_SERVING)
        await self._server.start()

    async def load(self, load: Load) -> None:
        """Load and warm the models, then say SERVING. Raises what ``load`` raises."""
        await self.servicer.load(load)
        await self._set_health(health_pb2.HealthCheckResponse.SERVING)

    async def stop(self, grace: float = 30.0, *, delay: float = 0.0) -> None:
        """Say NOT_SERVING, go on for ``delay`` seconds, then refuse new calls and answer those accepted.

        What is not answered after ``grace`` seconds is cut off.
        """
        await self.health.enter_graceful_shutdown()
        await asyncio.sleep(delay)
        self.servicer.begin_drain()
        await self._server.stop(grace)
        await self.servicer.close()

    async def _set_health(self, status: Any) -> None:
        for name in ("", SERVICE):
            await self.health.set(name, status)
