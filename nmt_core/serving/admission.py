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
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, NoReturn, TypeVar

import grpc

from nmt_core.serving.credentials import Tokens, address_of, certified_name, identify, owner_of
from nmt_core.serving.engine.slices import off_loop
from nmt_core.serving.errors import RpcError, internal, trailers
from nmt_core.serving.limits import ACCOUNT, Account, ClientLimit, Limits, Memory
from nmt_core.serving.streams import StreamRequest
from nmt_core.serving.telemetry import CALL, SERVICE, Call, LogQueue, Metrics
from nmt_core.serving.wire import MessageReader

HEALTH = "grpc.health.v1.Health"
_WATCH = f"/{HEALTH}/Watch"

_CODES = {code.value[0]: code for code in grpc.StatusCode}
_LONGEST_REQUEST_ID = 128
_LARGEST_QUESTION = 1 << 16  # bytes of a request to health
_ON_THE_WAY = 0.1  # seconds by which a client's deadline may pass before ours: its clock began before the call was here
_Response = TypeVar("_Response")
_log = logging.getLogger(__name__)


class Admission(grpc.aio.ServerInterceptor):  # type: ignore[type-arg]  # generic in the stubs, not when it runs
    """See the module's docstring. ``tokens``, where given, are required, and may be exchanged."""

    def __init__(
        self,
        limits: Limits,
        memory: Memory,
        metrics: Metrics,
        *,
        tokens: Tokens | None = None,
        log: LogQueue | None = None,
    ) -> None:
        self.memory, self.tokens = memory, tokens
        self._metrics, self._log = metrics, log
        self._requests, self._questions = MessageReader(limits), MessageReader(limits, _LARGEST_QUESTION)
        self._calls = ClientLimit("calls", limits.calls, limits.client_calls, "TOO_MANY_CALLS")
        self._checks = ClientLimit("health checks", limits.calls, limits.client_calls, "TOO_MANY_CALLS")
        self._streams = ClientLimit("streams", limits.streams, limits.client_streams, "TOO_MANY_STREAMS")
        self._wrapped: dict[str, Any] = {}
        self.unfinished: set[asyncio.Task[Any]] = set()
        metrics.open.labels("call").set_function(lambda: self._calls.open.total)
        metrics.open.labels("stream").set_function(lambda: self._streams.open.total)

    async def intercept_service(self, continuation: Callable[[Any], Any], handler_call_details: Any) -> Any:
        """Put the wrapper around the method's handler. Health is asked for, not watched."""
        method = handler_call_details.method
        if method not in self._wrapped:
            handler = await continuation(handler_call_details)
            if handler is None or method == _WATCH:
                return None
            self._wrapped[method] = self._wrap(handler, *method[1:].rpartition("/")[::2])
        return self._wrapped[method]

    def _wrap(self, handler: Any, service: str, method: str) -> Any:
        if service == HEALTH:
            return self._health(handler)
        return self._stream(handler, method) if handler.request_streaming else self._unary(handler, method)

    def _unary(self, handler: Any, method: str) -> Any:
        async def answer(contents: AsyncIterator[bytes], context: Any) -> bytes:
            async def handle(call: Call, held: contextlib.ExitStack) -> bytes:
                content = await self._requests.first(context, call.client)
                account = held.enter_context(Account(self.memory, call.client))
                ACCOUNT.set(account)
                account.charge_message(len(content))
                request = await off_loop(call.client, len(content), self._requests.parse, handler, method, content)
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
            parse = functools.partial(
                off_loop, call.client, len(content), self._requests.parse, handler, method, content
            )
            return StreamRequest(parse, len(content))

        async def answer(contents: AsyncIterator[bytes], context: Any) -> AsyncIterator[bytes]:
            async def handle(call: Call, held: contextlib.ExitStack) -> None:
                await context.send_initial_metadata(())  # the stream goes on: a proxy need not wait for an answer
                await handler.stream_stream(functools.partial(next_request, call, context), context)

            await self._call(method, self._streams, context, handle)
            return
            yield b""  # a generator, as other interceptors take it; what is answered is written to the context

        return grpc.stream_stream_rpc_method_handler(answer)

    def _health(self, handler: Any) -> Any:
        """Health needs no token; its messages are small."""

        async def answer(contents: AsyncIterator[bytes], context: Any) -> Any:
            try:
                client = address_of(context)
                with self._checks.one(client):
                    request = self._questions.parse(handler, "", await self._questions.first(context, client))
                    return await handler.unary_unary(request, context)
            except RpcError as failure:
                await self._abort(context, failure)

        return grpc.stream_unary_rpc_method_handler(answer, response_serializer=handler.response_serializer)

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
        self._metrics.started.labels(SERVICE, method).inc()
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
            call.code = "DEADLINE_EXCEEDED" if left is not None and left <= _ON_THE_WAY else "CANCELLED"
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
        self._metrics.handled.labels(SERVICE, call.method, call.code).inc()
        self._metrics.seconds.labels(SERVICE, call.method).observe(seconds)
        if self._log is not None:
            self._log.write(call.to_json(seconds))

    async def _abort(self, context: Any, failure: RpcError) -> NoReturn:
        """End a call, whether of the service or of another, with its error."""
        self._metrics.refused.labels(failure.reason).inc()
        failure.__cause__ = failure.__context__ = failure.__traceback__ = None  # whose frames hold the request
        await context.abort(_CODES[failure.code], str(failure), trailers(failure))
        raise AssertionError("the library raises here")


def _request_id(context: Any) -> str:
    """The caller's own, if it is one, or a new one."""
    given = dict(context.invocation_metadata() or ()).get("x-request-id", "")
    usable = isinstance(given, str) and 0 < len(given) <= _LONGEST_REQUEST_ID and given.isprintable()
    return given if usable else uuid.uuid4().hex
