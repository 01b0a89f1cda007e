"""Messages of clients: each read within a time, few of a client at once, and parsed when its fields are few enough.

What a client has sent of a message stays in the library's memory until the rest is there.
"""

from __future__ import annotations

import asyncio
import weakref
from typing import Any

from google.protobuf.message import DecodeError
from google.rpc import code_pb2

from nmt_core.serving.errors import RpcError, invalid
from nmt_core.serving.limits import Limits
from nmt_core.serving.wire import SHAPES, has_more_fields

_READ_OF_A_CLIENT = 4  # messages at once
_ENDED = 0.1  # seconds


class MessageReader:
    """Reads and parses the messages of calls: each within ``limits.body`` seconds, and few of one client at once.

    ``largest`` is the most bytes of a message, where that is less than what the library takes.
    """

    def __init__(self, limits: Limits, largest: int | None = None) -> None:
        self._limits, self._largest = limits, largest
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
            async with permits, asyncio.timeout(self._limits.body):
                content = await context.read()
        except TimeoutError:
            problem = f"the request did not arrive within {self._limits.body:g} s"
            raise RpcError(problem, code=code_pb2.DEADLINE_EXCEEDED, reason="SLOW_MESSAGE") from None
        return content if isinstance(content, bytes) else None  # the library's EOF

    def parse(self, handler: Any, method: str, content: bytes) -> Any:
        """The message for the method's ``handler``. Raises RpcError."""
        if self._largest is not None and len(content) > self._largest:
            problem = f"the request has {len(content)} bytes; at most {self._largest}"
            raise invalid("", problem, reason="TOO_MANY_ITEMS")
        if has_more_fields(content, SHAPES.get(method, {}), self._limits.fields):
            problem = f"the request has more fields than {self._limits.items} items need; send several requests"
            raise invalid("", problem, reason="TOO_MANY_ITEMS")
        try:
            return handler.request_deserializer(content)
        except DecodeError as error:
            problem = "the request is not a message of this method, or a text in it is not UTF-8"
            raise invalid("", problem, reason="NOT_A_MESSAGE") from error
