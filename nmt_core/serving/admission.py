"""What every call passes through before and after its method.

Before a byte of a message is read: who calls, and whether they may have one more call. Then the message
is read (within a time, few of a client at once), its fields are counted, its memory is accounted for, and
it is parsed. Behind it: errors become status codes, and the call is counted, logged and traced.

All methods are served as streams of requests, so that a message is read here, with these bounds. gRPC itself reads the
message of other methods, after its interceptors (in grpcio 1.85.1) and without a limit of time. Answers come as bytes.
A client that is slow to send or to read has its own calls open; the proxy of the deploy files ends them.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import logging
import weakref
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Any, NoReturn, TypeVar

import grpc
from google.protobuf.message import DecodeError
from google.rpc import code_pb2

from nmt_core.serving.call import ACCOUNT, CALL, SERVICE, Call
from nmt_core.serving.credentials import Tokens, address_of, certified_name, check_token, identify
from nmt_core.serving.errors import RpcError, bare, internal, invalid, trailers
from nmt_core.serving.limits import Limits
from nmt_core.serving.off_loop import off_loop
from nmt_core.serving.shares import Account, ClientLimit, Memory
from nmt_core.serving.streams import StreamRequest
from nmt_core.serving.telemetry import Telemetry
from nmt_core.serving.wire import SHAPES, has_more_fields

HEALTH = "grpc.health.v1.Health"

_CODES = {code.value[0]: code for code in grpc.StatusCode}
_LONGEST_REQUEST_ID = 128
_READ_OF_A_CLIENT = 4  # messages at once
_ENDED = 0.1  # seconds
_LONGEST_QUESTION = 1 << 16  # bytes of a request to health or reflection
_Response = TypeVar("_Response")
_log = logging.getLogger(__name__)


class Calls(grpc.aio.ServerInterceptor):  # type: ignore[type-arg]  # generic in the stubs, not when it runs
    """See the module's docstring. ``tokens``, where given, are required, and may be exchanged.

    ``certified``: clients may show certificates.
    """

    def __init__(
        self,
        limits: Limits,
        memory: Memory,
        telemetry: Telemetry | None = None,
        *,
        tokens: Tokens | None = None,
        certified: bool = False,
    ) -> None:
        self.limits, self.memory, self.tokens, self._certified = limits, memory, tokens, certified
        self._telemetry = telemetry or Telemetry()
        self._messages, self._questions, self._descriptions = (MessageReader(limits.body) for _ in range(3))
        each = limits.client_calls
        self._calls = ClientLimit("calls", most=limits.calls, each=each, reason="TOO_MANY_CALLS")
        self._streams = ClientLimit(
            "streams", most=limits.streams, each=limits.client_streams, reason="TOO_MANY_STREAMS"
        )
        self._checks = ClientLimit("health checks", most=limits.calls, each=each, reason="TOO_MANY_CALLS")
        watches = limits.watches, limits.client_watches
        self._watches = ClientLimit("health watches", most=watches[0], each=watches[1], reason="TOO_MANY_WATCHES")
        self._wrapped: dict[str, Any] = {}
        self.unfinished = 0
        if self._telemetry.metrics is not None:
            self._telemetry.metrics.watch_open(call=self._calls, stream=self._streams)

    async def intercept_service(self, continuation: Callable[[Any], Any], handler_call_details: Any) -> Any:
        """Put the wrapper around the method's handler."""
        method = handler_call_details.method
        if method not in self._wrapped:
            handler = await continuation(handler_call_details)
            if handler is None:
                return None
            self._wrapped[method] = self._wrap(handler, *method[1:].rpartition("/")[::2])
        return self._wrapped[method]

    def _wrap(self, handler: Any, service: str, method: str) -> Any:
        if service == HEALTH:
            return self._watch(handler) if handler.response_streaming else self._check(handler)
        if service != SERVICE:
            return self._described(handler)
        return self._stream(handler, method) if handler.request_streaming else self._unary(handler, method)

    # ---- the methods of the service

    def _unary(self, handler: Any, method: str) -> Any:
        async def answer(contents: AsyncIterator[bytes], context: Any) -> bytes:
            async def handle(call: Call, held: contextlib.ExitStack) -> bytes:
                content = await self._messages.first(context, call.client)
                account = held.enter_context(Account(self.memory, call.client))
                ACCOUNT.set(account)
                account.charge_message(len(content))
                request = await self._parsed(handler, method, content)
                del content
                response: bytes = await handler.unary_unary(request, context)
                return response

            return await self._call(method, self._calls, context, handle)

        return grpc.stream_unary_rpc_method_handler(answer)

    def _stream(self, handler: Any, method: str) -> Any:
        async def next_request(call: Call, context: Any) -> StreamRequest | None:
            content = await context.read()
            if not isinstance(content, bytes):  # the library's EOF
                return None
            if self.tokens is not None:  # which may have been revoked since, or be for other models
                owner = check_token(dict(context.invocation_metadata() or ()), self.tokens)
                call.models = owner.models
            return StreamRequest(functools.partial(self._parsed, handler, method, content), len(content))

        async def answer(contents: AsyncIterator[bytes], context: Any) -> None:
            async def handle(call: Call, held: contextlib.ExitStack) -> None:
                await context.send_initial_metadata(())  # the stream goes on: a proxy need not wait for an answer
                await handler.stream_stream(functools.partial(next_request, call, context), context)

            await self._call(method, self._streams, context, handle)

        return grpc.stream_stream_rpc_method_handler(answer)

    async def _parsed(self, handler: Any, method: str, content: bytes) -> Any:
        """The message; a large one beside the event loop."""
        return await off_loop(len(content), self._parse, handler, method, content)

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
            try:
                with self._checks.one(client):
                    request = self._question(handler, await self._questions.first(context, client))
                    return await handler.unary_unary(request, context)
            except RpcError as refusal:
                await self._abort(context, refusal)

        return grpc.stream_unary_rpc_method_handler(answer, response_serializer=handler.response_serializer)

    def _watch(self, handler: Any) -> Any:
        async def answer(contents: AsyncIterator[bytes], context: Any) -> None:
            client = address_of(context.peer())
            try:
                with self._watches.one(client):
                    request = self._question(handler, await self._questions.first(context, client))
                    await handler.unary_stream(request, context)
            except RpcError as refusal:
                await self._abort(context, refusal)

        return grpc.stream_stream_rpc_method_handler(answer, response_serializer=handler.response_serializer)

    def _described(self, handler: Any) -> Any:
        """Reflection: token and number of streams are asked for, and who asks nothing more is not waited for."""
        if not (handler.request_streaming and handler.response_streaming):
            return None

        async def answer(contents: AsyncIterator[bytes], context: Any) -> AsyncIterator[Any]:
            async def requests() -> AsyncIterator[Any]:
                while (content := await self._descriptions.next(context, client)) is not None:
                    yield self._question(handler, content)

            try:
                metadata = dict(context.invocation_metadata() or ())
                client = identify(context.peer(), self._certificate(context), metadata, self.tokens).key
                with self._watches.one(client):
                    async for response in handler.stream_stream(requests(), context):
                        yield response
            except RpcError as refusal:
                await self._abort(context, refusal)

        return grpc.stream_stream_rpc_method_handler(answer, response_serializer=handler.response_serializer)

    def _question(self, handler: Any, content: bytes) -> Any:
        """The message of a small request. Raises RpcError for a large one."""
        if len(content) > _LONGEST_QUESTION:
            problem = f"the request has {len(content)} bytes; at most {_LONGEST_QUESTION}"
            raise invalid("", problem, reason="TOO_MANY_ITEMS")
        return self._parse(handler, "", content)

    # ---- around a call of the service

    async def _call(
        self,
        method: str,
        limit: ClientLimit,
        context: Any,
        handle: Callable[[Call, contextlib.ExitStack], Awaitable[_Response]],
    ) -> _Response:
        """Handle a call: what is refused or goes wrong becomes its status.

        What it ``handle``s with is held until the answer is sent.
        """
        metadata = dict(context.invocation_metadata() or ())
        call, task = Call(method, context.peer(), _request_id(metadata)), asyncio.current_task()
        assert task is not None
        CALL.set(call)
        self.unfinished += 1
        held = contextlib.ExitStack()
        task.add_done_callback(lambda _: self._finished(held))
        self._telemetry.started(call)
        refusal: RpcError | None = None
        with self._telemetry.span(call, metadata):
            try:
                call.certificate = self._certificate(context)  # which the log has of callers without a token, too
                call.client, call.user, call.models = identify(call.peer, call.certificate, metadata, self.tokens)
                held.enter_context(limit.one(call.client))
                return await handle(call, held)
            except RpcError as error:
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
            finally:
                if refusal is not None:
                    call.code, call.reason = _CODES[refusal.code].name, refusal.reason
                self._telemetry.ended(call)
        return await self._abort(context, refusal)

    def _certificate(self, context: Any) -> str:
        """The name in the certificate of the caller, if any. Raises RpcError."""
        return certified_name(context.auth_context() or {}) if self._certified else ""

    def _finished(self, held: contextlib.ExitStack) -> None:
        """The status of a call was sent, or cannot be."""
        self.unfinished -= 1
        held.close()

    async def _abort(self, context: Any, refusal: RpcError) -> NoReturn:
        self._telemetry.rejected(refusal.reason)
        refusal = bare(refusal)  # which the library keeps, with what it raises
        await context.abort(_CODES[refusal.code], str(refusal), trailers(refusal))
        raise AssertionError("the library raises here")


class MessageReader:
    """Reads the messages of calls, each within ``seconds``, and few of one client at once.

    What a client has sent of a message stays in the library's memory until the rest is there.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._of: weakref.WeakValueDictionary[str, asyncio.Semaphore] = weakref.WeakValueDictionary()

    async def first(self, context: Any, client: str) -> bytes:
        """The first message of a call. Raises RpcError."""
        content = await self.next(context, client)
        if content is None:
            await asyncio.sleep(_ENDED)  # a call that the library ended, as with too large a message, is cancelled here
            raise invalid("", "the call ended without a request", reason="NOT_A_MESSAGE")
        return content

    async def next(self, context: Any, client: str) -> bytes | None:
        """The next message; None where there is none any more. Raises RpcError."""
        permits = self._of.setdefault(client, asyncio.Semaphore(_READ_OF_A_CLIENT))
        try:
            async with permits, asyncio.timeout(self._seconds):
                content = await context.read()
        except TimeoutError:
            problem = f"the request did not arrive within {self._seconds:g} s"
            raise RpcError(problem, code=code_pb2.DEADLINE_EXCEEDED, reason="SLOW_MESSAGE") from None
        return content if isinstance(content, bytes) else None  # the library's EOF


def _request_id(metadata: Mapping[str, Any]) -> str:
    """The caller's own, if it is one."""
    given = metadata.get("x-request-id", "")
    ours = isinstance(given, str) and 0 < len(given) <= _LONGEST_REQUEST_ID and given.isprintable()
    return given if ours else ""
