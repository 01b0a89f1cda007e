"""Reading the message of a call: honest ones are there at once, slow ones are few and have a time.

What a client has sent of a message stays in the library's memory until the rest is there, so that only
some may be on their way at once, each of at most the size that the server receives.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator

from google.rpc import code_pb2

from nmt_core.serving.refusal import Refusal, invalid
from nmt_core.serving.shares import Shares

_AT_ONCE = 8
_SOON = 0.1  # seconds that a message may take as one of those
_SLOW, _SLOW_EACH = 16, 4


class Bodies:
    """The messages that are being read. ``seconds`` is what one may take."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._at_once = asyncio.Semaphore(_AT_ONCE)
        self._slow = Shares("slow messages", most=_SLOW, each=_SLOW_EACH, reason="TOO_MANY_SLOW_MESSAGES")

    async def one(self, contents: AsyncIterator[bytes], client: str) -> bytes:
        """The first message. Raises Refusal."""
        await self._at_once.acquire()
        with _Place(self._at_once, self._slow, client) as place:
            try:
                async with asyncio.timeout(self._seconds) as place.limit:
                    content = await anext(contents, None)
            except TimeoutError:
                raise place.refusal or _late(self._seconds) from None
        if content is None:
            raise invalid("", "the call ended without a request", reason="NOT_A_MESSAGE")
        return content


class _Place:
    """Where a message is counted that is being read: among those that are there at once, or among the slow ones.

    Without a task of its own: most messages are there before the timer ends.
    """

    limit: asyncio.Timeout

    def __init__(self, at_once: asyncio.Semaphore, slow: Shares, client: str) -> None:
        self._at_once, self._slow, self._client = at_once, slow, client
        self._held: contextlib.AbstractContextManager[None] | None = None
        self._quick = True
        self.refusal: Refusal | None = None

    def __enter__(self) -> _Place:
        self._timer = asyncio.get_running_loop().call_later(_SOON, self._become_slow)
        return self

    def __exit__(self, *error: object) -> None:
        self._timer.cancel()
        if self._quick:
            self._at_once.release()
        if self._held is not None:
            self._held.__exit__(None, None, None)

    def _become_slow(self) -> None:
        self._quick = False
        self._at_once.release()
        share = self._slow.one(self._client)
        try:
            share.__enter__()
        except Refusal as refusal:
            self.refusal = refusal
            self.limit.reschedule(asyncio.get_running_loop().time())
        else:
            self._held = share


def _late(seconds: float) -> Refusal:
    problem = f"the request did not arrive within {seconds:g} s"
    return Refusal(problem, code=code_pb2.DEADLINE_EXCEEDED, reason="SLOW_MESSAGE")
