"""Reading the messages of calls: honest ones are there at once, slow ones are few and have a time.

What a client has sent of a message stays in the library's memory until the rest is there, so that only
some may be on their way at once, each of at most the size that the server receives. Clients take turns:
nobody waits until the half-sent messages of another have used up their times.
"""

from __future__ import annotations

import asyncio
import collections
from typing import Any

from google.rpc import code_pb2

from nmt_core.serving.errors import Refusal, invalid
from nmt_core.serving.shares import Shares, subtract
from nmt_core.serving.timers import Timers

_AT_ONCE, _AT_ONCE_EACH = 16, 4
_SOON = 0.1  # seconds that a message may take as one of those
_SLOW, _SLOW_EACH = 16, 4


class MessageReader:
    """Reads the messages of calls. ``seconds`` is what one may take."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._quick_messages = FairSemaphore(_AT_ONCE, each=_AT_ONCE_EACH)
        self._slow = Shares("slow messages", most=_SLOW, each=_SLOW_EACH, reason="TOO_MANY_SLOW_MESSAGES")
        self._soon = Timers(_SOON)

    async def first(self, context: Any, client: str) -> bytes:
        """The first message of a call. Raises Refusal."""
        content = await self.next(context, client)
        if content is None:
            await asyncio.sleep(_SOON)  # a call that the library ended, as with too large a message, is cancelled here
            raise invalid("", "the call ended without a request", reason="NOT_A_MESSAGE")
        return content

    async def next(self, context: Any, client: str) -> bytes | None:
        """The next message; None where there is none any more. Raises Refusal."""
        await self._quick_messages.acquire(client)
        with _Reading(self._quick_messages, self._slow, client, self._seconds, self._soon) as reading:
            try:
                async with asyncio.timeout(None) as reading.limit:  # which begins when the message is slow
                    content = await context.read()
            except TimeoutError:
                raise reading.refusal or _late(self._seconds) from None
        return content if isinstance(content, bytes) else None  # the library's EOF


class FairSemaphore:
    """A semaphore of ``most`` permits, ``each`` of one client; clients who wait take turns."""

    def __init__(self, most: int, *, each: int) -> None:
        self._free, self._each = most, each
        self._of: dict[str, int] = {}
        self._waiting: dict[str, collections.deque[asyncio.Future[None]]] = {}

    async def acquire(self, client: str) -> None:
        """Wait for a permit."""
        if self._free and self._of.get(client, 0) < self._each:  # nobody waits who could have it
            self._give(client)
            return
        future = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(client, collections.deque()).append(future)
        try:
            await future
        except asyncio.CancelledError:
            if not future.cancelled():  # it had a permit already
                self.release(client)
            raise

    def release(self, client: str) -> None:
        """Return a permit, which goes to the first call that waits of the client whose turn it is."""
        self._free += 1
        subtract(self._of, client, 1)
        for waiting in [waiting for waiting in self._waiting if self._of.get(waiting, 0) < self._each]:
            futures = self._waiting.pop(waiting)
            while futures and (future := futures.popleft()).cancelled():
                pass
            if futures:
                self._waiting[waiting] = futures  # its next turn comes after those of the others
            if not future.cancelled():
                self._give(waiting)
                future.set_result(None)
                return

    def _give(self, client: str) -> None:
        self._free -= 1
        self._of[client] = self._of.get(client, 0) + 1


class _Reading:
    """One message that is being read, counted among the quick ones and then, if it is late, the slow ones.

    It has no task of its own, since most messages are there before the timer ends. ``seconds`` is what one may take.
    """

    limit: asyncio.Timeout

    def __init__(self, quick: FairSemaphore, slow: Shares, client: str, seconds: float, soon: Timers) -> None:
        self._quick_messages, self._slow, self._client, self._soon = quick, slow, client, soon
        self._left = max(0.0, seconds - _SOON)  # when it is slow
        self._quick = True
        self.refusal: Refusal | None = None

    def __enter__(self) -> _Reading:
        self._soon.start(self, self._become_slow)
        return self

    def __exit__(self, *error: object) -> None:
        self._soon.cancel(self)
        if self._quick:
            self._quick_messages.release(self._client)
        elif self.refusal is None:
            self._slow.give(self._client)

    def _become_slow(self) -> None:
        self._quick = False
        self._quick_messages.release(self._client)
        try:
            self._slow.take(self._client)
        except Refusal as refusal:
            self.refusal, self._left = refusal, 0.0
        self.limit.reschedule(asyncio.get_running_loop().time() + self._left)


def _late(seconds: float) -> Refusal:
    problem = f"the request did not arrive within {seconds:g} s"
    return Refusal(problem, code=code_pb2.DEADLINE_EXCEEDED, reason="SLOW_MESSAGE")
