"""Messages that are being read: what is half-sent delays its own client only."""

from __future__ import annotations

import asyncio

import pytest

from nmt_core.serving.errors import RpcError
from nmt_core.serving.limits import Limits
from nmt_core.serving.wire import MessageReader


class Context:
    """A call whose message comes when it is told to."""

    def __init__(self, content: bytes | None = None) -> None:
        self._content = asyncio.get_running_loop().create_future()
        if content is not None:
            self.send(content)

    def send(self, content: bytes) -> None:
        self._content.set_result(content)

    async def read(self) -> bytes:
        return await self._content


async def test_half_sent_messages_of_one_client_do_not_hold_up_another() -> None:
    reader = MessageReader(Limits(body=60.0))
    half = [asyncio.create_task(reader.first(Context(), "a")) for _ in range(2000)]
    await asyncio.sleep(0)
    assert await asyncio.wait_for(reader.first(Context(b"b"), "b"), 20) == b"b"  # of 50 s that those would take
    assert sum(task.done() for task in half) < 200
    for task in half:
        task.cancel()
    await asyncio.gather(*half, return_exceptions=True)
    assert await reader.first(Context(b"a"), "a") == b"a"


async def test_a_message_that_is_late_is_refused_and_one_that_is_slow_is_read() -> None:
    reader, slow = MessageReader(Limits(body=0.5)), Context()
    late = asyncio.create_task(reader.first(Context(), "a"))
    reading = asyncio.create_task(reader.first(slow, "a"))
    await asyncio.sleep(0.2)
    slow.send(b"slow")
    assert await reading == b"slow"
    with pytest.raises(RpcError) as caught:
        await late
    assert caught.value.reason == "SLOW_MESSAGE"
