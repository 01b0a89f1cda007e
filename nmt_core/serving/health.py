"""Health as gRPC defines it, with an end for those who watch.

github.com/grpc/grpc/blob/master/doc/health-checking.md. Two names have a status: the empty one of the
server, and that of the service. The library's own asyncio servicer writes to its watchers while it holds a lock, so
that one that does not read could stop a change for all.
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
    """SERVING or not: ``serving`` says whether devices work, an ``ending`` server is NOT_SERVING anyway."""

    def __init__(self) -> None:
        self.serving = self._ending = self._closed = False
        self._changed = asyncio.Event()

    def set(self, *, serving: bool | None = None, ending: bool = False, closed: bool = False) -> None:
        """Change the status; ``ending`` is for good, ``closed`` ends the calls of those who watch, too."""
        self.serving = self.serving if serving is None else serving
        self._ending, self._closed = self._ending or ending, self._closed or closed
        self._changed.set()
        self._changed = asyncio.Event()

    async def Check(self, request: Any, context: Any) -> Any:
        """See health.proto. Raises RpcError for a name that has no status."""
        if request.service not in _NAMES:
            problem = f"there is no service {request.service[:100]!r}"
            raise RpcError(problem, code=code_pb2.NOT_FOUND, reason="UNKNOWN_SERVICE")
        return self._answer(request.service)

    async def List(self, request: Any, context: Any) -> Any:
        """See health.proto."""
        return health_pb2.HealthListResponse(statuses={name: self._answer(name) for name in _NAMES})

    async def Watch(self, request: Any, context: Any) -> None:
        """See health.proto. Raises RpcError when the server ends."""
        before = None
        while not self._closed:
            changed, answer = self._changed, self._answer(request.service)
            if answer != before:
                await write(context, answer)
                before = answer
            await changed.wait()
        raise unavailable("the server ends", reason="DRAINING")

    def _answer(self, name: str) -> Any:
        works = SERVING if self.serving and not self._ending else NOT_SERVING
        return health_pb2.HealthCheckResponse(status=works if name in _NAMES else _UNKNOWN)
