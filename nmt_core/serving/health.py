"""Health as gRPC defines it, with an end for those who watch.

github.com/grpc/grpc/blob/master/doc/health-checking.md. Two names have a status: the empty one of the
server, and that of the service.
"""

from __future__ import annotations

import asyncio
from typing import Any

from google.rpc import code_pb2
from grpc_health.v1 import health_pb2, health_pb2_grpc

from nmt_core.serving.call import SERVICE, write
from nmt_core.serving.errors import RpcError, unavailable

SERVING = health_pb2.HealthCheckResponse.SERVING
NOT_SERVING = health_pb2.HealthCheckResponse.NOT_SERVING
_UNKNOWN = health_pb2.HealthCheckResponse.SERVICE_UNKNOWN
_NAMES = ("", SERVICE)


class Health(health_pb2_grpc.HealthServicer):  # type: ignore[misc]  # the library has no types
    """SERVING or not; ``end`` makes it NOT_SERVING for good."""

    def __init__(self) -> None:
        self._serving = False
        self._ending = self._closed = False
        self._changed = asyncio.Event()

    @property
    def serving(self) -> bool:
        """The status of every service."""
        return self._serving and not self._ending

    @property
    def serving_models(self) -> bool:
        """What was set, whether or not the server ends."""
        return self._serving

    def set(self, serving: bool) -> None:
        """Change the status."""
        self._serving = serving
        self._tell()

    def end(self) -> None:
        """Say NOT_SERVING from now on."""
        self._ending = True
        self._tell()

    def close(self) -> None:
        """End the calls of those who watch."""
        self._closed = True
        self._tell()

    async def Check(self, request: Any, context: Any) -> Any:
        """See health.proto. Raises RpcError for a name that has no status."""
        if request.service not in _NAMES:
            problem = f"there is no service {request.service[:100]!r}"
            raise RpcError(problem, code=code_pb2.NOT_FOUND, reason="UNKNOWN_SERVICE")
        return health_pb2.HealthCheckResponse(status=self._status(request.service))

    async def List(self, request: Any, context: Any) -> Any:
        """See health.proto."""
        statuses = {name: health_pb2.HealthCheckResponse(status=self._status(name)) for name in _NAMES}
        return health_pb2.HealthListResponse(statuses=statuses)

    async def Watch(self, request: Any, context: Any) -> None:
        """See health.proto. Raises RpcError when the server ends."""
        before = None
        while not self._closed:
            changed, status = self._changed, self._status(request.service)
            if status != before:
                await write(context, health_pb2.HealthCheckResponse(status=status))
                before = status
            await changed.wait()
        raise unavailable("the server ends", reason="DRAINING")

    def _status(self, name: str) -> Any:
        if name not in _NAMES:
            return _UNKNOWN
        return SERVING if self.serving else NOT_SERVING

    def _tell(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()
