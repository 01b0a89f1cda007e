"""Reading the message of a call: honest ones are there at once, slow ones are few and have a time.

What a client has sent of a message stays in the library's memory until the rest is there, so that only
some may be on their way at once, each of at most the size that the server receives.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

from google.rpc import code_pb2

from nmt_core.serving.refusal import Refusal, invalid
from nmt_core.serving.shares import Shares

_AT_ONCE = 8
_SOON = 0.1  # seconds that a message may take as one of those
_SLOW, _SLOW_EACH = 16, 4


class Bodies:
    """The messages that are being read. ``seconds`` is what a slow one may take."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._at_once = asyncio.Semaphore(_AT_ONCE)
        self._slow = Shares("slow messages", most=_SLOW, each=_SLOW_EACH, reason="TOO_MANY_SLOW_MESSAGES")

    async def one(self, contents: AsyncIterator[bytes], client: str) -> bytes:
        """The first message. Raises Refusal."""
        reading: asyncio.Future[bytes | None] | None = None
        try:
            async with self._at_once:
                reading = asyncio.ensure_future(anext(contents, None))
                await asyncio.wait([reading], timeout=_SOON)
            content = reading.result() if reading.done() else await self._slowly(reading, client)
        finally:
            if reading is not None:
                reading.cancel()
        if content is None:
            raise invalid("", "the call ended without a request", reason="NOT_A_MESSAGE")
        return content

    async def _slowly(self, reading: asyncio.Future[bytes | None], client: str) -> bytes | None:
        with self._slow.one(client):
            await asyncio.wait([reading], timeout=self._seconds)
        if not reading.done():
            problem = f"the request did not arrive within {self._seconds:g} s"
            raise Refusal(problem, code=code_pb2.DEADLINE_EXCEEDED, reason="SLOW_MESSAGE")
        return reading.result()
