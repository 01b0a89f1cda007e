"""The gRPC server: address, health, and how it starts and ends."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import gc
import logging
import socket
import sys
import time
from dataclasses import dataclass
from typing import Any

import grpc
from google.rpc import code_pb2
from grpc_health.v1 import health_pb2, health_pb2_grpc

from nmt_core.base.errors import NmtError
from nmt_core.serving.admission import Admission
from nmt_core.serving.credentials import Certificates, Tokens
from nmt_core.serving.errors import RpcError
from nmt_core.serving.limits import Limits
from nmt_core.serving.models.device import Load
from nmt_core.serving.service import NmtServicer
from nmt_core.serving.telemetry import SERVICE, LogQueue
from nmt_core.v1 import nmt_pb2_grpc

_IDENTITY = 1  # the only compression, as a set of bits: none
_UNREAD = 65_535  # bytes of a call that the library takes before they are asked for, HTTP/2's own default
_READ = 1 << 17  # bytes of a connection that it reads at a time; else more and more while a client sends without end
_WATCHDOG = 0.5  # seconds
_GARBAGE = 100  # searches of young objects until all are searched, ten times as many as usual: nobody else runs then
_SWITCH = 0.0002  # seconds after which Python changes between threads: the event loop waits less for the others
_LAST = 1.0  # seconds at most for the statuses of the last calls to leave, with many calls on a busy machine
_NAMES = ("", SERVICE)  # that have a health
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Address:
    """Where to listen; without certificates the connection is not encrypted."""

    host: str = "127.0.0.1"
    port: int = 50551
    certificates: Certificates | None = None


class Health(health_pb2_grpc.HealthServicer):  # type: ignore[misc]  # the library has no types
    """Health as gRPC defines it (doc/health-checking.md), of the server (the empty name) and of the service.

    ``serving`` says whether the device works; an ``ending`` server is NOT_SERVING anyway.
    """

    serving = ending = False

    async def Check(self, request: Any, context: Any) -> Any:
        """See health.proto. Raises RpcError for a name that has no status."""
        if request.service not in _NAMES:
            problem = f"there is no service {request.service[:100]!r}"
            raise RpcError(problem, code=code_pb2.NOT_FOUND, reason="UNKNOWN_SERVICE")
        return self._answer()

    async def List(self, request: Any, context: Any) -> Any:
        """See health.proto."""
        return health_pb2.HealthListResponse(statuses=dict.fromkeys(_NAMES, self._answer()))

    def _answer(self) -> Any:
        return health_pb2.HealthCheckResponse(status="SERVING" if self.serving and not self.ending else "NOT_SERVING")


class NmtServer:
    """A server on one address. Raises NmtError when it cannot listen there.

    ``start`` answers (NOT_SERVING, UNAVAILABLE), ``load`` makes it ready, ``stop`` drains and ends it.
    """

    def __init__(
        self, servicer: NmtServicer, address: Address, *, tokens: Tokens | None = None, log: LogQueue | None = None
    ) -> None:
        self.servicer = servicer
        self.health = Health()
        self.admission = Admission(servicer.limits, servicer.memory, servicer.metrics, tokens=tokens, log=log)
        self._server = grpc.aio.server(options=_options(servicer.limits), interceptors=[self.admission])
        nmt_pb2_grpc.add_NmtServiceServicer_to_server(servicer, self._server)
        health_pb2_grpc.add_HealthServicer_to_server(self.health, self._server)
        self.port = self._listen(address)
        self._watchdog: asyncio.Task[None] | None = None

    def _listen(self, address: Address) -> int:
        name = f"[{address.host}]:{address.port}" if ":" in address.host else f"{address.host}:{address.port}"
        try:
            if address.certificates is None:
                return int(self._server.add_insecure_port(name))
            return int(self._server.add_secure_port(name, address.certificates.credentials()))
        except RuntimeError as error:
            raise NmtError(f"cannot listen on {name}{_why_not(address)}") from error

    async def start(self) -> None:
        """Begin to answer, health with NOT_SERVING."""
        gc.freeze()  # what was imported so far
        gc.set_threshold(*gc.get_threshold()[:2], _GARBAGE)
        sys.setswitchinterval(min(_SWITCH, sys.getswitchinterval()))
        await self._server.start()
        self._watchdog = asyncio.create_task(self._watch_device())

    async def load(self, load: Load) -> None:
        """Load and warm the models, then say SERVING; later: exchange them. Raises what ``load`` raises."""
        try:
            await self.servicer.device.load(load)
        finally:
            _freeze()
        self.health.serving = self.servicer.device.works

    async def stop(self, grace: float = 30.0, *, delay: float = 0.0) -> None:
        """Say NOT_SERVING, go on for ``delay`` seconds, then refuse new calls and answer those accepted.

        What is not answered after ``grace`` seconds is cut off. Connections without calls are not waited for.
        """
        self.health.ending = True
        await asyncio.sleep(delay)
        end = time.monotonic() + grace
        self.servicer.begin_drain()
        stopping = asyncio.create_task(self._server.stop(grace))
        while self.admission.unfinished and time.monotonic() < end:
            await asyncio.wait(self.admission.unfinished, timeout=end - time.monotonic())
        await asyncio.wait([stopping], timeout=_LAST)
        await self._server.stop(None)
        await self.servicer.device.engine.close(max(0.0, end - time.monotonic()))
        if self._watchdog is not None:
            self._watchdog.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._watchdog

    async def _watch_device(self) -> None:
        """Health follows the device: one that has failed, or hangs, does not serve."""
        while True:
            await asyncio.sleep(_WATCHDOG)
            works = self.servicer.device.works
            if works != self.health.serving:
                if not works and self.servicer.device.models:
                    _log.error("the device does not answer any more; health is NOT_SERVING")
                self.health.serving = works


def _why_not(address: Address) -> str:
    """Why the library cannot listen on an address, which it does not say, and what to do."""
    try:
        for family, kind, _, _, place in socket.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM):
            with socket.socket(family, kind) as trial:
                trial.bind(place)
    except (socket.gaierror, UnicodeError):  # a name with an empty part, or one that is too long
        return ": this machine knows no host of that name"
    except OSError as error:
        if error.errno != errno.EADDRINUSE:
            return f" ({error.strerror}); check --host and --port"
    return "; is another server running there? choose another --port, or check --host"


def _freeze() -> None:
    """Let nothing that is there now be searched for garbage any more, after what is garbage has gone.

    Models and what they import stay for long, and each search of them keeps everybody waiting for a tenth of a second.
    """
    gc.unfreeze()
    gc.collect()
    gc.freeze()


def _options(limits: Limits) -> list[tuple[str, int]]:
    """What the library does for us (grpc/impl/channel_arg_names.h)."""
    return [
        ("grpc.so_reuseport", 0),  # else a second server on the port starts, and gets half the calls
        ("grpc.max_receive_message_length", limits.request_bytes),
        ("grpc.max_send_message_length", limits.message_bytes),
        ("grpc.http2.bdp_probe", 0),  # which lets every call fill buffers of many MiB, all the more on a busy machine
        ("grpc.http2.lookahead_bytes", _UNREAD),
        ("grpc.experimental.tcp_max_read_buffer_size", _READ),
        ("grpc.compression_enabled_algorithms_bitset", _IDENTITY),  # a small message must not become a large one
        ("grpc.max_metadata_size", 8 << 10),
        ("grpc.absolute_max_metadata_size", 16 << 10),
        ("grpc.max_concurrent_streams", 1_000),  # calls of one connection; more wait at the client
        ("grpc.server.max_pending_requests", limits.calls),  # above that it cancels calls at random, of anybody
        ("grpc.server.max_pending_requests_hard_limit", 2 * limits.calls),
        ("grpc.max_allowed_incoming_connections", limits.connections),
        ("grpc.server_handshake_timeout_ms", 10_000),
        ("grpc.max_connection_idle_ms", round(1000 * limits.idle)),
        ("grpc.max_connection_age_ms", round(1000 * limits.age)),
        ("grpc.max_connection_age_grace_ms", round(1000 * limits.age)),
        ("grpc.keepalive_time_ms", 60_000),  # who does not answer a ping has gone
        ("grpc.keepalive_timeout_ms", 20_000),
        ("grpc.http2.min_ping_interval_without_data_ms", 30_000),
        ("grpc.keepalive_permit_without_calls", 1),
    ]
