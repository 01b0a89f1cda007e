"""Messages that are being read: clients take turns, and what is half-sent holds up its own client only."""

from __future__ import annotations

import asyncio

import pytest

from nmt_core.serving.errors import Refusal
from nmt_core.serving.message_reader import FairSemaphore, MessageReader


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


def test_half_sent_messages_of_one_client_do_not_hold_up_another() -> None:
    async def scenario() -> None:
        reader = MessageReader(60.0)
        half = [asyncio.create_task(reader.first(Context(), "a")) for _ in range(2000)]
        await asyncio.sleep(0)
        assert await asyncio.wait_for(reader.first(Context(b"b"), "b"), 2) == b"b"  # of 50 s that those would take
        assert sum(task.done() for task in half) < 200
        for task in half:
            task.cancel()
        await asyncio.gather(*half, return_exceptions=True)
        assert await reader.first(Context(b"a"), "a") == b"a"

    asyncio.run(scenario())


def test_a_message_that_is_late_is_refused_and_one_that_is_slow_is_read() -> None:
    async def scenario() -> None:
        reader, slow = MessageReader(0.5), Context()
        late = asyncio.create_task(reader.first(Context(), "a"))
        reading = asyncio.create_task(reader.first(slow, "a"))
        await asyncio.sleep(0.2)
        slow.send(b"slow")
        assert await reading == b"slow"
        with pytest.raises(Refusal) as caught:
            await late
        assert caught.value.reason == "SLOW_MESSAGE"
        too_many = [asyncio.create_task(reader.first(Context(), "a")) for _ in range(6)]
        reasons = [error.reason for error in await asyncio.gather(*too_many, return_exceptions=True)]
        assert sorted(set(reasons)) == ["SLOW_MESSAGE", "TOO_MANY_SLOW_MESSAGES"]

    asyncio.run(scenario())


def test_permits_are_taken_in_turns_and_given_back_by_those_who_go() -> None:
    async def scenario() -> None:
        permits, order = FairSemaphore(2, each=1), []

        async def use(client: str) -> None:
            await permits.acquire(client)
            order.append(client)
            await asyncio.sleep(0)
            permits.release(client)

        await permits.acquire("x")
        await permits.acquire("y")
        waiting = [asyncio.create_task(use(client)) for client in ("a", "a", "a", "b", "c")]
        gone = asyncio.create_task(use("d"))
        await asyncio.sleep(0)
        gone.cancel()
        permits.release("x")
        permits.release("y")
        await asyncio.gather(*waiting)
        assert order[:2] == ["a", "b"]
        assert order.index("c") < 4
        assert sorted(order) == ["a", "a", "a", "b", "c"]
        await permits.acquire("x")
        last = asyncio.create_task(permits.acquire("x"))
        await asyncio.sleep(0)
        permits.release("x")  # it is given the permit, and goes at once
        last.cancel()
        await asyncio.gather(gone, last, return_exceptions=True)
        await asyncio.wait_for(asyncio.gather(permits.acquire("f"), permits.acquire("g")), 5)

    asyncio.run(scenario())
