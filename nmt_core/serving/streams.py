"""One stream of requests: answers as they finish, a bounded number under way, an end for streams that are not used."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import logging
import time
from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

from google.rpc import code_pb2

from nmt_core.serving.call import ACCOUNT, CALL, Account, Memory, write
from nmt_core.serving.engine.slices import off_loop
from nmt_core.serving.errors import RpcError, internal, invalid, to_error, unavailable
from nmt_core.serving.limits import Limits
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
    """The requests and answers of one call.

    ``answer`` makes the response to a request, ``message`` what an error travels in; ``refused`` is called with the
    reason where a request is rejected.
    """

    def __init__(
        self,
        context: Any,
        answer: Callable[[Any], Awaitable[bytes]],
        message: Callable[..., Any],
        limits: Limits,
        memory: Memory,
        refused: Callable[[str], object],
    ) -> None:
        self._context, self._answer, self._message = context, answer, message
        self._limits, self._memory, self._refused = limits, memory, refused
        self._free = asyncio.Semaphore(limits.stream_requests)
        self._writing = asyncio.Lock()
        self._tasks: set[asyncio.Task[None]] = set()
        self._used = time.monotonic()
        self._reader: asyncio.Task[None] | None = None

    def stop_reading(self) -> None:
        """Take no more requests; those that were started are answered."""
        if self._reader is not None:
            self._reader.cancel()

    async def run(self, read: Read) -> None:
        """Answer until the client has no more requests. Raises RpcError."""
        self._reader = asyncio.create_task(self._read(read))
        unused = asyncio.create_task(self._until_unused())
        try:
            await asyncio.wait([self._reader, unused], return_when=asyncio.FIRST_COMPLETED)
            if unused.done():
                unused.result()
            while self._tasks:
                done, _ = await asyncio.wait(self._tasks, return_when=asyncio.FIRST_COMPLETED)
                for task in done:
                    task.result()
            if not self._reader.cancelled():
                self._reader.result()
        finally:
            left = [self._reader, unused, *self._tasks]
            for task in left:
                task.cancel()
            await asyncio.gather(*left, return_exceptions=True)

    async def _read(self, read: Read) -> None:
        """Start requests, each as soon as there is memory for it, until the last one."""
        while True:
            await self._free.acquire()
            if (request := await read()) is None:
                return
            with contextlib.ExitStack() as held:
                account = held.enter_context(Account(self._memory, CALL.get().client))
                try:
                    while not self._has_memory(account, request.size):
                        await asyncio.sleep(_PAUSE)
                    task = asyncio.create_task(self._one(await request.parse(), request.size, account))
                finally:
                    del request  # which a kept exception would hold
                until_done = held.pop_all()
            task.add_done_callback(functools.partial(self._finished, until_done))
            self._tasks.add(task)

    def _has_memory(self, account: Account, size: int) -> bool:
        """Charge for a request; True also for one that needs more memory than there is: it will be rejected."""
        self._used = time.monotonic()
        try:
            account.charge_message(size)
        except RpcError as refusal:
            return refusal.reason not in _LATER
        return True

    def _finished(self, held: contextlib.ExitStack, task: asyncio.Task[None]) -> None:
        held.close()
        self._free.release()
        self._used = time.monotonic()
        if task.cancelled() or task.exception() is None:
            self._tasks.discard(task)
        elif self._reader is not None:  # the stream ends; the task stays, to say why
            self._reader.cancel()

    async def _one(self, message: Any, size: int, account: Account) -> None:
        """Answer one request. Raises RpcError when the answer is not taken."""
        name = message.id[:_LONGEST_ID]
        try:
            if len(message.id) > _LONGEST_ID:
                raise invalid("id", f"the id has {len(message.id)} characters; at most {_LONGEST_ID}")
            response = await self._retried(message.request, size, account)
            await self._write(await off_loop(len(response), in_stream, name, response))
        except _Unread:
            raise
        except RpcError as refusal:
            await self._refuse(name, refusal)
        except Exception:
            _log.exception("a request of a stream failed")
            await self._refuse(name, internal())

    async def _refuse(self, name: str, refusal: RpcError) -> None:
        self._refused(refusal.reason)
        await self._write(self._message(id=name, error=to_error(refusal)).SerializeToString())

    async def _retried(self, request: Any, size: int, account: Account) -> bytes:
        """The response. While queue or memory is full the stream waits; its requests are not rejected."""
        ACCOUNT.set(account)
        while True:
            try:
                if not account.held:
                    account.charge_message(size)
                return await self._answer(request)
            except RpcError as refusal:
                if refusal.reason not in _LATER:
                    raise
                account.release(waiting=size)
                pause = min(refusal.retry_after or _PAUSE, _PAUSE)
            await asyncio.sleep(pause)

    async def _write(self, response: bytes) -> None:
        """Write an answer, and wait until the network has taken it. Raises RpcError when that takes too long."""
        seconds = self._limits.unread
        async with self._writing:
            try:
                async with asyncio.timeout(seconds):
                    await write(self._context, response)
            except TimeoutError:
                problem = f"the answer was not read for {seconds:g} s"
                raise _Unread(problem, code=code_pb2.DEADLINE_EXCEEDED, reason="ANSWER_UNREAD") from None

    async def _until_unused(self) -> None:
        """Raises RpcError when nothing was asked or answered for some time."""
        while (left := self._used + self._limits.idle - time.monotonic()) > 0 or self._tasks:
            await asyncio.sleep(max(left, min(1.0, self._limits.idle)))
        raise unavailable(f"the stream was not used for {self._limits.idle:g} s", reason="STREAM_IDLE")
