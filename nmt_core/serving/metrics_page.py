"""The page of metrics over HTTP, for Prometheus: whoever asks slowly, or not at all, is hung up on."""

from __future__ import annotations

import asyncio
import contextlib

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_LATEST

from nmt_core.base.errors import NmtError

_SECONDS = 5.0  # for a request and its answer
_CONNECTIONS = 100
_LONGEST = 8192  # bytes of a request


class MetricsPage:
    """Answers ``GET /metrics``. ``port`` is known after ``start``."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._registry = registry
        self._open = 0
        self._server: asyncio.Server | None = None

    async def start(self, host: str, port: int) -> None:
        """Listen. Raises NmtError."""
        try:
            self._server = await asyncio.start_server(self._connected, host, port, limit=_LONGEST)
        except OSError as error:
            problem = error.strerror or str(error)
            raise NmtError(f"cannot listen on {host}:{port} for --metrics-port ({problem})") from error
        self.port: int = self._server.sockets[0].getsockname()[1]

    def close(self) -> None:
        """Listen no more."""
        if self._server is not None:
            self._server.close()

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._open += 1
        try:
            if self._open <= _CONNECTIONS:
                async with asyncio.timeout(_SECONDS):
                    writer.write(self._answer(await reader.readuntil(b"\r\n\r\n")))
                    await writer.drain()
        except (TimeoutError, OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass
        finally:
            self._open -= 1
            writer.close()
            with contextlib.suppress(OSError, TimeoutError):
                async with asyncio.timeout(_SECONDS):
                    await writer.wait_closed()

    def _answer(self, request: bytes) -> bytes:
        method, _, rest = request.split(b"\r\n", 1)[0].partition(b" ")
        path = rest.partition(b" ")[0].partition(b"?")[0]
        if method not in (b"GET", b"HEAD") or path not in (b"/metrics", b"/"):
            return _response("404 Not Found", "text/plain", b"the metrics are at /metrics\n", body=method != b"HEAD")
        return _response("200 OK", CONTENT_TYPE_LATEST, generate_latest(self._registry), body=method == b"GET")


def _response(status: str, kind: str, content: bytes, *, body: bool) -> bytes:
    head = f"HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {len(content)}\r\nConnection: close\r\n\r\n"
    return head.encode("ascii") + (content if body else b"")
