"""What every call passes through before and after its method.

Before a byte of a message is read: who calls, and whether they may have one more call. Then the message
is read (within a time, few slow ones at once), its fields are counted, its memory is accounted for, and
it is parsed. Behind it: errors become status codes, and the call is counted, logged and traced.

All methods are served as streams of requests, since gRPC reads the message of other methods before it
asks anybody.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
import uuid
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import grpc
from google.protobuf.message import DecodeError

from nmt_core.serving.body import Bodies
from nmt_core.serving.call import SERVICE, Call, begin, charge_to
from nmt_core.serving.clients import address_of, check_token, identify
from nmt_core.serving.cost import REQUEST_COPIES
from nmt_core.serving.limits import Limits
from nmt_core.serving.refusal import Refusal, internal, invalid, trailers
from nmt_core.serving.shares import Memory, Shares
from nmt_core.serving.streams import write
from nmt_core.serving.wire import SHAPES, has_more_fields

if TYPE_CHECKING:
    from nmt_core.serving.log_writer import LogWriter
    from nmt_core.serving.metrics import Metrics
    from nmt_core.serving.security import Tokens
    from nmt_core.serving.tracing import Tracing

HEALTH = "grpc.health.v1.Health"

_CODES = {code.value[0]: code for code in grpc.StatusCode}
_LONGEST_REQUEST_ID = 128
_SMALL = 1 << 16  # bytes of a message that the event loop parses itself
_log = logging.getLogger(__name__)


@dataclass
class Watchers:
    """Who is told of calls: each may be missing. ``tokens``, where given, are required; they may be exchanged."""

    metrics: Metrics | None = None
    log: LogWriter | None = None
    tokens: Tokens | None = None
    tracing: Tracing | None = None


class Calls(grpc.aio.ServerInterceptor):  # type: ignore[type-arg]  # generic in the stubs, not when it runs
    """See the module's docstring."""

    def __init__(self, limits: Limits, memory: Memory, watchers: Watchers | None = None) -> None:
        self.limits, self.memory, self.watchers = limits, memory, watchers or Watchers()
        self._bodies = Bodies(limits.body_seconds)
        self._health_bodies = Bodies(limits.body_seconds)
        each = limits.client_calls
        self._calls = Shares("calls", most=limits.calls, each=each, reason="TOO_MANY_CALLS")
        self._streams = Shares("streams", most=limits.streams, each=limits.client_streams, reason="TOO_MANY_STREAMS")
        self._checks = Shares("health checks", most=limits.calls, each=each, reason="TOO_MANY_CALLS")
        watches = limits.watches, limits.client_watches
        self._watches = Shares("health watches", most=watches[0], each=watches[1], reason="TOO_MANY_WATCHES")
        self._parser = ThreadPoolExecutor(max_workers=1, thread_name_prefix="parse")
        self.unfinished = 0

    async def intercept_service(self, continuation: Callable[[Any], Any], handler_call_details: Any) -> Any:
        """Put the wrapper around the method's handler."""
        handler = await continuation(handler_call_details)
        if handler is None:
            return None
        service, _, method = handler_call_details.method[1:].rpartition("/")
        if service == HEALTH:
            return self._watch(handler) if handler.response_streaming else self._check(handler)
        if service != SERVICE:
            return self._described(handler)
        return self._stream(handler, method) if handler.request_streaming else self._unary(handler, method)

    # ---- the methods of the service

    def _unary(self, handler: Any, method: str) -> Any:
        async def answer(contents: AsyncIterator[bytes], context: Any) -> None:
            async with self._call(method, self._calls, context) as call:
                content = await self._bodies.one(contents, call.client)
                with self.memory.account(call.client) as account:
                    charge_to(account)
                    account.charge(REQUEST_COPIES * len(content))
                    request = await self._parsed(handler, method, content)
                    del content
                    response = await handler.unary_unary(request, context)
                    await write(context, response, self.limits.unread_seconds)

        return grpc.stream_stream_rpc_method_handler(answer, response_serializer=handler.response_serializer)

    def _stream(self, handler: Any, method: str) -> Any:
        async def parsed(contents: AsyncIterator[bytes], context: Any) -> AsyncIterator[Any]:
            async for content in contents:
                if self.watchers.tokens is not None:  # it may have been revoked since
                    check_token(context.invocation_metadata(), self.watchers.tokens)
                yield await self._parsed(handler, method, content)

        async def answer(contents: AsyncIterator[bytes], context: Any) -> None:
            async with self._call(method, self._streams, context):
                await handler.stream_stream(parsed(contents, context), context)

        return grpc.stream_stream_rpc_method_handler(answer, response_serializer=handler.response_serializer)

    async def _parsed(self, handler: Any, method: str, content: bytes) -> Any:
        """The message; a large one beside the event loop."""
        if len(content) <= _SMALL:
            return self._parse(handler, method, content)
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._parser, self._parse, handler, method, content)

    def _parse(self, handler: Any, method: str, content: bytes) -> Any:
        if has_more_fields(content, SHAPES.get(method, {}), self.limits.fields):
            problem = f"the request has more fields than {self.limits.items} items need; send several requests"
            raise invalid("", problem, reason="TOO_MANY_ITEMS")
        try:
            return handler.request_deserializer(content)
        except DecodeError as error:
            problem = "the request is not a message of this method, or a text in it is not UTF-8"
            raise invalid("", problem, reason="NOT_A_MESSAGE") from error

    # ---- health and reflection

    def _check(self, handler: Any) -> Any:
        async def answer(contents: AsyncIterator[bytes], context: Any) -> Any:
            client = address_of(context.peer())
            async with self._told(context):
                with self._checks.one(client):
                    content = await self._health_bodies.one(contents, client)
                    return await handler.unary_unary(self._parse(handler, "", content), context)

        return grpc.stream_unary_rpc_method_handler(answer, response_serializer=handler.response_serializer)

    def _watch(self, handler: Any) -> Any:
        async def answer(contents: AsyncIterator[bytes], context: Any) -> None:
            client = address_of(context.peer())
            async with self._told(context):
                with self._watches.one(client):
                    content = await self._health_bodies.one(contents, client)
                    await handler.unary_stream(self._parse(handler, "", content), context)

        return grpc.stream_stream_rpc_method_handler(answer, response_serializer=handler.response_serializer)

    def _described(self, handler: Any) -> Any:
        """Reflection: token and number of streams are asked for."""
        if not (handler.request_streaming and handler.response_streaming):
            return None

        async def answer(requests: Any, context: Any) -> AsyncIterator[Any]:
            async with self._told(context):
                client = identify(context, self.watchers.tokens)
                with self._watches.one(client.key):
                    async for response in handler.stream_stream(requests, context):
                        yield response

        return grpc.stream_stream_rpc_method_handler(
            answer, request_deserializer=handler.request_deserializer, response_serializer=handler.response_serializer
        )

    @contextlib.asynccontextmanager
    async def _told(self, context: Any) -> AsyncIterator[None]:
        """A refusal inside becomes the status of a call that is not logged."""
        try:
            yield
        except Refusal as refusal:
            self._count_refusal(refusal.reason)
            await context.abort(_CODES[refusal.code], str(refusal), trailers(refusal))

    # ---- around a call of the service

    @contextlib.asynccontextmanager
    async def _call(self, method: str, share: Shares, context: Any) -> AsyncIterator[Call]:
        """Around a handler: what is refused or goes wrong inside becomes the status of the call."""
        call = Call(method, context.peer(), _request_id(context))
        begin(call)
        refusal: Refusal | None = None
        with self._counted(call, share, context), self._span(call, context):
            try:
                client = identify(context, self.watchers.tokens)
                call.client, call.user = client
                with share.one(call.client):
                    self._show_open(share)
                    yield call
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
            self._count_refusal(refusal.reason)
            await context.abort(_CODES[refusal.code], str(refusal), trailers(refusal))

    @contextlib.contextmanager
    def _counted(self, call: Call, share: Shares, context: Any) -> Iterator[None]:
        self.unfinished += 1
        context.add_done_callback(self._finished)
        metrics, log = self.watchers.metrics, self.watchers.log
        if metrics is not None:
            metrics.started.labels(SERVICE, call.method).inc()
        try:
            yield
        finally:
            seconds = time.monotonic() - call.begin
            self._show_open(share)
            if metrics is not None:
                metrics.handled.labels(SERVICE, call.method, call.code).inc()
                metrics.seconds.labels(SERVICE, call.method).observe(seconds)
            if log is not None:
                log.write(call.to_json(seconds))

    def _finished(self, context: Any) -> None:
        """The status of a call was sent."""
        self.unfinished -= 1

    def _show_open(self, share: Shares) -> None:
        if self.watchers.metrics is not None:
            self.watchers.metrics.open.labels("stream" if share is self._streams else "call").set(share.taken)

    def _count_refusal(self, reason: str) -> None:
        if self.watchers.metrics is not None:
            self.watchers.metrics.refused.labels(reason).inc()

    @contextlib.contextmanager
    def _span(self, call: Call, context: Any) -> Iterator[None]:
        if self.watchers.tracing is None:
            yield
            return
        with self.watchers.tracing.span(call, context.invocation_metadata()):
            yield


def _request_id(context: Any) -> str:
    given = dict(context.invocation_metadata() or ()).get("x-request-id", "")
    ours = isinstance(given, str) and 0 < len(given) <= _LONGEST_REQUEST_ID and given.isprintable()
    return given if ours else uuid.uuid4().hex
