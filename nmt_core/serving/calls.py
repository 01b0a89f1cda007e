"""What every call passes through: token, parsing, limits, errors to status codes, metrics, access log, tracing.

It takes requests as bytes and parses them itself, so that what cannot be parsed is INVALID_ARGUMENT
and counted like any other call. Health checks pass untouched.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import json
import logging
import time
import uuid
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import IO, TYPE_CHECKING, Any

import grpc
from google.protobuf.message import DecodeError
from google.rpc import code_pb2

from nmt_core.serving.limits import Limits
from nmt_core.serving.refusal import Refusal, busy, internal, invalid, trailers

if TYPE_CHECKING:
    from nmt_core.serving.metrics import Metrics
    from nmt_core.serving.security import Tokens
    from nmt_core.serving.tracing import Tracing

HEALTH = "/grpc.health.v1.Health/"
SERVICE = "nmt_core.v1.NmtService"

_CODES = {code.value[0]: code for code in grpc.StatusCode}
_LONGEST_REQUEST_ID = 128
_log = logging.getLogger(__name__)


@dataclass
class Call:
    """What the log says of a call; the servicer fills in what it asked for."""

    method: str
    peer: str
    request_id: str
    begin: float = field(default_factory=time.monotonic)
    user: str = ""
    model: str = ""
    items: int = 0
    requests: int = 0
    code: str = "OK"
    reason: str = ""

    def to_json(self, seconds: float) -> str:
        """One line; no text of a request is in it."""
        when = datetime.now(UTC).isoformat(timespec="milliseconds")
        facts = {name: value for name, value in vars(self).items() if name != "begin" and value not in ("", 0)}
        return json.dumps({"time": when, **facts, "seconds": round(seconds, 6)}, ensure_ascii=True)


_current: contextvars.ContextVar[Call] = contextvars.ContextVar("call")


def note(*, model: str, items: int) -> None:
    """Say for the log what the call being handled is about."""
    with contextlib.suppress(LookupError):
        call = _current.get()
        call.model = model
        call.items += items
        call.requests += 1


class Calls(grpc.aio.ServerInterceptor):  # type: ignore[type-arg]  # generic in the stubs, not when it runs
    """See the module's docstring. ``log`` takes the access log, ``tokens`` are required where given."""

    def __init__(
        self,
        limits: Limits,
        *,
        metrics: Metrics | None = None,
        log: IO[str] | None = None,
        tokens: Tokens | None = None,
        tracing: Tracing | None = None,
    ) -> None:
        self.limits, self._metrics, self._out, self._tokens, self._tracing = limits, metrics, log, tokens, tracing
        self._open = {"call": 0, "stream": 0}

    async def intercept_service(self, continuation: Callable[[Any], Any], handler_call_details: Any) -> Any:
        """Put the wrapper around the method's handler."""
        handler = await continuation(handler_call_details)
        method: str = handler_call_details.method
        if handler is None or method.startswith(HEALTH):
            return handler
        if not method.startswith(f"/{SERVICE}/"):
            return self._guarded(handler)
        wrap = self._stream if handler.request_streaming else self._unary
        return wrap(handler, method.rpartition("/")[2])

    def _unary(self, handler: Any, method: str) -> Any:
        async def answer(content: bytes, context: Any) -> Any:
            async with self._call(method, "call", self.limits.calls, context):
                return await handler.unary_unary(_parse(handler, content), context)

        return grpc.unary_unary_rpc_method_handler(answer, response_serializer=handler.response_serializer)

    def _stream(self, handler: Any, method: str) -> Any:
        async def parsed(contents: AsyncIterator[bytes]) -> AsyncIterator[Any]:
            async for content in contents:
                yield _parse(handler, content)

        async def answer(contents: AsyncIterator[bytes], context: Any) -> None:
            async with self._call(method, "stream", self.limits.streams, context):
                await handler.stream_stream(parsed(contents), context)

        return grpc.stream_stream_rpc_method_handler(answer, response_serializer=handler.response_serializer)

    def _guarded(self, handler: Any) -> Any:
        """Another service (reflection): only the token is asked for."""
        if self._tokens is None or not (handler.request_streaming and handler.response_streaming):
            return handler

        async def answer(requests: Any, context: Any) -> AsyncIterator[Any]:
            try:
                self._user(context)
            except Refusal as refusal:
                await context.abort(_CODES[refusal.code], str(refusal), trailers(refusal))
            async for response in handler.stream_stream(requests, context):
                yield response

        return grpc.stream_stream_rpc_method_handler(
            answer, request_deserializer=handler.request_deserializer, response_serializer=handler.response_serializer
        )

    @contextlib.asynccontextmanager
    async def _call(self, method: str, kind: str, most: int, context: Any) -> AsyncIterator[None]:
        """Around a handler: what is refused or goes wrong inside becomes the status of the call."""
        call = Call(method, context.peer(), _request_id(context))
        _current.set(call)
        refusal: Refusal | None = None
        with self._counted(call, kind), self._span(call, context):
            try:
                call.user = self._user(context)
                if self._open[kind] > most:
                    problem = f"{most} {kind}s are open already; try again later"
                    raise busy(problem, reason=f"TOO_MANY_{kind.upper()}S", retry_after=1.0)
                yield
            except Refusal as error:
                refusal = error
            except asyncio.CancelledError:
                left = context.time_remaining()
                call.code = "DEADLINE_EXCEEDED" if left is not None and left <= 0 else "CANCELLED"
                raise
            except grpc.aio.AbortError:
                call.code = "UNKNOWN"
                raise
            except Exception:
                _log.exception("a request failed")
                refusal = internal()
            if refusal is not None:
                call.code, call.reason = _CODES[refusal.code].name, refusal.reason
        if refusal is not None:
            await context.abort(_CODES[refusal.code], str(refusal), trailers(refusal))

    @contextlib.contextmanager
    def _counted(self, call: Call, kind: str) -> Iterator[None]:
        self._open[kind] += 1
        metrics = self._metrics
        if metrics is not None:
            metrics.started.labels(SERVICE, call.method).inc()
            metrics.open.labels(kind).set(self._open[kind])
        try:
            yield
        finally:
            self._open[kind] -= 1
            seconds = time.monotonic() - call.begin
            if metrics is not None:
                metrics.open.labels(kind).set(self._open[kind])
                metrics.handled.labels(SERVICE, call.method, call.code).inc()
                metrics.seconds.labels(SERVICE, call.method).observe(seconds)
            if self._out is not None:
                self._out.write(call.to_json(seconds) + "\n")
                self._out.flush()

    @contextlib.contextmanager
    def _span(self, call: Call, context: Any) -> Iterator[None]:
        if self._tracing is None:
            yield
            return
        with self._tracing.span(call, context.invocation_metadata()):
            yield

    def _user(self, context: Any) -> str:
        """Whose token the call has. Raises Refusal."""
        if self._tokens is None:
            return ""
        given = dict(context.invocation_metadata() or ()).get("authorization", "")
        owner = self._tokens.owner(given if isinstance(given, str) else "")
        if owner is None:
            problem = "the token is wrong" if given else "a token is needed: metadata 'authorization: Bearer TOKEN'"
            raise Refusal(problem, code=code_pb2.UNAUTHENTICATED, reason="UNAUTHENTICATED")
        return owner


def _parse(handler: Any, content: bytes) -> Any:
    try:
        return handler.request_deserializer(content)
    except DecodeError as error:
        problem = "the request is not a message of this method, or a text in it is not UTF-8"
        raise invalid("", problem, reason="NOT_A_MESSAGE") from error


def _request_id(context: Any) -> str:
    given = dict(context.invocation_metadata() or ()).get("x-request-id", "")
    ours = isinstance(given, str) and 0 < len(given) <= _LONGEST_REQUEST_ID and given.isprintable()
    return given if ours else uuid.uuid4().hex
