"""One stream of requests: answers as they finish, a bounded number in progress, an end for unused streams."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

import grpc
from google.rpc import code_pb2

from nmt_core.serving.engine.slices import off_loop
from nmt_core.serving.errors import RpcError, internal, invalid, to_error, unavailable
from nmt_core.serving.limits import ACCOUNT, Account, Limits, Memory
from nmt_core.serving.telemetry import CALL, Metrics
from nmt_core.serving.wire import in_stream

_LONGEST_ID = 128
_LATER = ("QUEUE_FULL", "MEMORY_FULL")
_PAUSE = 1.0  # seconds at most until the next attempt
_log = logging.getLogger(__name__)


class StreamRequest(NamedTuple):
    """A message of a stream, to be parsed, and its size in bytes."""

    parse: Callable[[], Awaitable[Any]]
    size: int


Read = Callable[[], Awaitable[StreamRequest | None]]
"""Reads the next message of a stream; None behind the last one."""


class _Unread(RpcError):
    """The client does not read its answers."""


class Stream:
    """The requests and answers of one call. Each request has a task, which starts the next one when it has its message.

    ``answer`` makes the response to a request, ``message`` what an error travels in.
    """

    def __init__(
        self,
        context: Any,
        answer: Callable[[Any], Awaitable[bytes]],
        message: Callable[..., Any],
        limits: Limits,
        memory: Memory,
        metrics: Metrics,
    ) -> None:
        self._context, self._answer, self._message = context, answer, message
        self._limits, self._memory, self._metrics = limits, memory, metrics
        self._free = asyncio.Semaphore(limits.stream_requests)
        self._writing = asyncio.Lock()
        self._unused = asyncio.timeout(None)
        self._in_progress = 0
        self._reading: asyncio.Task[None] | None = None
        self._problem: RpcError | None = None

    def stop_reading(self) -> None:
        """Take no more requests; those that were started are answered."""
        if self._reading is not None:
            self._reading.cancel()

    async def run(self, read: Read) -> None:
        """Answer until the client has no more requests. Raises RpcError."""
        try:
            async with self._unused, asyncio.TaskGroup() as tasks:
                self._count(0)
                self._start_next(read, tasks)
        except TimeoutError:
            raise unavailable(f"the stream was not used for {self._limits.idle:g} s", reason="STREAM_IDLE") from None
        except BaseExceptionGroup as group:
            raise group.exceptions[0] from None
        if self._problem is not None:
            raise self._problem

    def _count(self, requests: int) -> None:
        """So many more requests are in progress, or fewer; without any the stream ends after some time."""
        self._in_progress += requests
        if not self._unused.expired():
            end = asyncio.get_running_loop().time() + self._limits.idle
            self._unused.reschedule(None if self._in_progress else end)

    def _start_next(self, read: Read, tasks: asyncio.TaskGroup) -> None:
        self._reading = tasks.create_task(self._one(read, tasks))

    async def _one(self, read: Read, tasks: asyncio.TaskGroup) -> None:
        """Take one request, where few enough are in progress."""
        async with self._free:
            try:
                await self._take(read, tasks)
            except _Unread:
                raise
            except RpcError as problem:  # the message could not be read; what was read before is answered first
                self._problem = problem

    async def _take(self, read: Read, tasks: asyncio.TaskGroup) -> None:
        """Read a request, wait until there is memory for it, and answer it while the next one is read."""
        if (request := await read()) is None:
            return
        size = request.size
        self._count(+1)
        try:
            with Account(self._memory, CALL.get().client) as account:
                ACCOUNT.set(account)
                await _hold_message(account, size)
                message = await request.parse()
                request = None
                self._start_next(read, tasks)
                await self._respond(message, size, account)
        finally:
            request = None  # which a kept exception would hold
            self._count(-1)

    async def _respond(self, message: Any, size: int, account: Account) -> None:
        """Answer a request. Raises RpcError when the answer is not taken."""
        name = message.id[:_LONGEST_ID]
        try:
            if len(message.id) > _LONGEST_ID:
                raise invalid("id", f"the id has {len(message.id)} characters; at most {_LONGEST_ID}")
            response = await self._retried(message.request, size, account)
            await self._write(await off_loop(CALL.get().client, len(response), in_stream, name, response))
        except _Unread:
            raise
        except RpcError as refusal:
            await self._refuse(name, refusal)
        except Exception:
            _log.exception("a request of a stream failed")
            await self._refuse(name, internal())

    async def _refuse(self, name: str, refusal: RpcError) -> None:
        self._metrics.refused.labels(refusal.reason).inc()
        await self._write(self._message(id=name, error=to_error(refusal)).SerializeToString())

    async def _retried(self, request: Any, size: int, account: Account) -> bytes:
        """The response. While queue or memory is full the stream waits; its requests are not rejected."""
        while True:
            try:
                return await self._answer(request)
            except RpcError as refusal:
                if refusal.reason not in _LATER:
                    raise
                pause = min(refusal.retry_after or _PAUSE, _PAUSE)
            account.release(waiting=size)
            await asyncio.sleep(pause)
            await _hold_message(account, size)

    async def _write(self, response: bytes) -> None:
        """Write an answer, and wait until the network has taken it. Raises RpcError when that takes too long."""
        seconds = self._limits.unread
        async with self._writing:
            try:
                async with asyncio.timeout(seconds):
                    await self._context.write(response)
            except grpc.aio.BaseError:  # the client has gone: the library ends the call by itself
                raise asyncio.CancelledError from None
            except TimeoutError:
                problem = f"the answer was not read for {seconds:g} s"
                raise _Unread(problem, code=code_pb2.DEADLINE_EXCEEDED, reason="ANSWER_UNREAD") from None


async def _hold_message(account: Account, size: int) -> None:
    """Charge for a message as soon as there is memory for it: by itself every message fits."""
    while True:
        try:
            return account.charge_message(size)
        except RpcError:
            await asyncio.sleep(_PAUSE)
