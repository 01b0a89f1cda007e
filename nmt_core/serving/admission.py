"""What every call passes through before and after its method.

Before a byte of a message is read: who calls, and whether they may have one more call. Then the message
is read (within a time, few of a client at once), its fields are counted, its memory is accounted for, and
it is parsed. Behind it: errors become status codes, and the call is counted and logged.

All methods are served as streams of requests, so that a message is read here, with these bounds. gRPC itself reads the
message of other methods, after its interceptors (in grpcio 1.85.1) and without a limit of time. Answers come as bytes.
A client that is slow to send or to read has its own calls open; the proxy of the deploy files ends them.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import logging
import time
import uuid
import weakref
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, NoReturn, TypeVar

import grpc
from google.protobuf.message import DecodeError
from google.rpc import code_pb2

from nmt_core.serving.call import ACCOUNT, CALL, SERVICE, Account, Call, ClientLimit, Memory, write
from nmt_core.serving.credentials import Tokens, address_of, certified_name, identify, owner_of
from nmt_core.serving.engine.slices import off_loop
from nmt_core.serving.errors import RpcError, internal, invalid, trailers
from nmt_core.serving.limits import Limits
from nmt_core.serving.logs import LogQueue
from nmt_core.serving.streams import StreamRequest
from nmt_core.serving.telemetry import Metrics
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
    """See the module's docstring. ``tokens``, where given, are required, and may be exchanged."""

    def __init__(
        self,
        limits: Limits,
        memory: Memory,
        *,
        tokens: Tokens | None = None,
        metrics: Metrics | None = None,
        log: LogQueue | None = None,
    ) -> None:
        self.limits, self.memory, self.tokens = limits, memory, tokens
        self._metrics, self._log = metrics, log
        self._reader = MessageReader(limits.body)
        calls, each = limits.calls, limits.client_calls
        streams, watches = (limits.streams, limits.client_streams), (limits.watches, limits.client_watches)
        self._calls = ClientLimit("calls", most=calls, each=each, reason="TOO_MANY_CALLS")
        self._checks = ClientLimit("health checks", most=calls, each=each, reason="TOO_MANY_CALLS")
        self._streams = ClientLimit("streams", most=streams[0], each=streams[1], reason="TOO_MANY_STREAMS")
        self._watches = ClientLimit("health watches", most=watches[0], each=watches[1], reason="TOO_MANY_WATCHES")
        self._wrapped: dict[str, Any] = {}
        self.unfinished: set[asyncio.Task[Any]] = set()
        if metrics is not None:
            metrics.watch_open(call=self._calls.open, stream=self._streams.open)

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
        if service != SERVICE:
            return self._question(handler, service)
        return self._stream(handler, method) if handler.request_streaming else self._unary(handler, method)

    def _unary(self, handler: Any, method: str) -> Any:
        async def answer(contents: AsyncIterator[bytes], context: Any) -> bytes:
            async def handle(call: Call, held: contextlib.ExitStack) -> bytes:
                content = await self._reader.first(context, call.client)
                account = held.enter_context(Account(self.memory, call.client))
                ACCOUNT.set(account)
                account.charge_message(len(content))
                request = await off_loop(len(content), self._parse, handler, method, content)
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
                call.models = owner_of(context, self.tokens).models
            parse = functools.partial(off_loop, len(content), self._parse, handler, method, content)
            return StreamRequest(parse, len(content))

        async def answer(contents: AsyncIterator[bytes], context: Any) -> AsyncIterator[bytes]:
            async def handle(call: Call, held: contextlib.ExitStack) -> None:
                await context.send_initial_metadata(())  # the stream goes on: a proxy need not wait for an answer
                await handler.stream_stream(functools.partial(next_request, call, context), context)

            await self._call(method, self._streams, context, handle)
            return
            yield b""  # a generator, as other interceptors take it; what is answered is written to the context

        return grpc.stream_stream_rpc_method_handler(answer)

    def _parse(self, handler: Any, method: str, content: bytes) -> Any:
        """The message; a large one is parsed off the event loop. Raises RpcError."""
        if has_more_fields(content, SHAPES.get(method, {}), self.limits.fields):
            problem = f"the request has more fields than {self.limits.items} items need; send several requests"
            raise invalid("", problem, reason="TOO_MANY_ITEMS")
        try:
            return handler.request_deserializer(content)
        except DecodeError as error:
            problem = "the request is not a message of this method, or a text in it is not UTF-8"
            raise invalid("", problem, reason="NOT_A_MESSAGE") from error

    def _question(self, handler: Any, service: str) -> Any:
        """Health, which needs no token, and reflection: small messages, few calls of a client."""
        limit = self._watches if handler.response_streaming else self._checks

        async def answer(contents: AsyncIterator[bytes], context: Any) -> AsyncIterator[bytes]:
            def parsed(content: bytes) -> Any:
                if len(content) > _LONGEST_QUESTION:
                    problem = f"the request has {len(content)} bytes; at most {_LONGEST_QUESTION}"
                    raise invalid("", problem, reason="TOO_MANY_ITEMS")
                return self._parse(handler, "", content)

            async def questions(reader: str) -> AsyncIterator[Any]:
                while (content := await self._reader.next(context, reader)) is not None:
                    yield parsed(content)

            try:
                client = address_of(context) if service == HEALTH else identify(context, self.tokens).key
                reader = f"{service} {client}"
                with limit.one(client):
                    if handler.request_streaming:
                        async for response in handler.stream_stream(questions(reader), context):
                            await write(context, response)
                    elif handler.response_streaming:
                        await handler.unary_stream(parsed(await self._reader.first(context, reader)), context)
                    else:
                        request = parsed(await self._reader.first(context, reader))
                        await write(context, await handler.unary_unary(request, context))
            except RpcError as failure:
                await self._abort(context, failure)
            return
            yield b""

        return grpc.stream_stream_rpc_method_handler(answer, response_serializer=handler.response_serializer)

    async def _call(
        self,
        method: str,
        limit: ClientLimit,
        context: Any,
        handle: Callable[[Call, contextlib.ExitStack], Awaitable[_Response]],
    ) -> _Response:
        """Handle a call of the service: what is rejected or fails becomes its status.

        What it ``handle``s with is held until the answer is sent.
        """
        call, task = Call(method, context.peer(), _request_id(context)), asyncio.current_task()
        assert task is not None
        CALL.set(call)
        held = contextlib.ExitStack()
        self.unfinished.add(task)
        task.add_done_callback(self.unfinished.discard)  # its status was sent, or cannot be
        task.add_done_callback(lambda _: held.close())
        if self._metrics is not None:
            self._metrics.call_started(method)
        failure: RpcError | None = None
        try:
            call.certificate = certified_name(context)  # for the log, beside the token's name
            call.client, call.user, call.models = identify(context, self.tokens)
            held.enter_context(limit.one(call.client))
            return await handle(call, held)
        except RpcError as error:
            failure = error
        except asyncio.CancelledError:
            left = context.time_remaining()
            call.code = "DEADLINE_EXCEEDED" if left is not None and left <= 0 else "CANCELLED"
            raise
        except Exception:
            _log.exception("a request failed")
            failure = internal()
        finally:
            if failure is not None:
                call.code, call.reason = _CODES[failure.code].name, failure.reason
            self._record(call)
        return await self._abort(context, failure)

    def _record(self, call: Call) -> None:
        """Count and log a call that has its code."""
        seconds = time.monotonic() - call.begin
        if self._metrics is not None:
            self._metrics.call_ended(call.method, call.code, seconds)
        if self._log is not None:
            self._log.write(call.to_json(seconds))

    async def _abort(self, context: Any, failure: RpcError) -> NoReturn:
        """End a call, whether of the service or of another, with its error."""
        if self._metrics is not None:
            self._metrics.refused.labels(failure.reason).inc()
        failure.__cause__ = failure.__context__ = failure.__traceback__ = None  # whose frames hold the request
        await context.abort(_CODES[failure.code], str(failure), trailers(failure))
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


def _request_id(context: Any) -> str:
    """The caller's own, if it is one, or a new one."""
    given = dict(context.invocation_metadata() or ()).get("x-request-id", "")
    usable = isinstance(given, str) and 0 < len(given) <= _LONGEST_REQUEST_ID and given.isprintable()
    return given if usable else uuid.uuid4().hex
