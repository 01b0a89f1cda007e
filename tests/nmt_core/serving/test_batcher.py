"""The queue in front of the models: what is done together, and who suffers from whom."""

from __future__ import annotations

import asyncio
import threading

import pytest

from nmt_core.errors import Overloaded, Unavailable
from nmt_core.serving.batcher import Batcher


def test_jobs_of_one_kind_that_wait_are_done_together() -> None:
    calls: list[tuple[object, list[int]]] = []

    def run(key, items):
        calls.append((key, list(items)))
        if key == "bad":
            raise ValueError("broken")
        return [item * 2 for item in items]

    async def scenario() -> list:
        batcher = Batcher(run)
        tasks = [
            asyncio.create_task(batcher.submit(key, items, tokens=len(items)))
            for key, items in [("x", [1]), ("bad", [2]), ("x", [3, 4]), ("x", [5])]
        ]
        await asyncio.sleep(0)
        tasks[3].cancel()
        answers = await asyncio.gather(*tasks, return_exceptions=True)
        await batcher.close()
        with pytest.raises(Unavailable):
            await batcher.submit("x", [6], tokens=1)
        return answers

    first, bad, second, cancelled = asyncio.run(scenario())
    assert (first, second) == ([2], [6, 8])
    assert isinstance(bad, ValueError)
    assert isinstance(cancelled, asyncio.CancelledError)
    assert calls == [("x", [1, 3, 4]), ("bad", [2])]


def test_a_full_queue_refuses_at_once() -> None:
    async def scenario() -> None:
        batcher = Batcher(lambda key, items: list(items), capacity=10)
        waiting = asyncio.create_task(batcher.submit("x", [1], tokens=8))
        await asyncio.sleep(0)
        with pytest.raises(Overloaded):
            await batcher.submit("x", [2], tokens=8)
        assert await waiting == [1]
        await batcher.close()

    asyncio.run(scenario())


def test_a_caller_who_goes_away_makes_room_at_once() -> None:
    begin, done = threading.Event(), []

    def run(key, items):
        assert begin.wait(10)
        done.extend(items)
        return list(items)

    async def scenario() -> None:
        batcher = Batcher(run, capacity=10)
        running = asyncio.create_task(batcher.submit("x", ["running"], tokens=9))
        await asyncio.sleep(0.05)  # it left the queue and waits in the model thread
        gone = asyncio.create_task(batcher.submit("x", ["gone"], tokens=9))
        await asyncio.sleep(0)
        with pytest.raises(Overloaded, match="9 tokens wait"):
            await batcher.submit("x", ["refused"], tokens=9)
        gone.cancel()
        await asyncio.gather(gone, return_exceptions=True)
        assert batcher.waiting_tokens == 0
        stays = asyncio.create_task(batcher.submit("x", ["stays"], tokens=9))
        running.cancel()  # too late to stop it, but nobody else may be hurt
        await asyncio.sleep(0)
        begin.set()
        assert await stays == ["stays"]
        await batcher.close()

    asyncio.run(scenario())
    assert done == ["running", "stays"]


def test_a_batch_ends_at_its_tokens_and_a_larger_job_is_done_alone() -> None:
    batches: list[list[int]] = []

    def run(key, items):
        batches.append(list(items))
        return list(items)

    async def scenario() -> list[list[int]]:
        batcher = Batcher(run, batch_tokens=10)
        answers = await asyncio.gather(
            *(batcher.submit("x", [number], tokens=tokens) for number, tokens in enumerate([6, 5, 4, 50, 1]))
        )
        await batcher.close()
        return answers

    assert asyncio.run(scenario()) == [[0], [1], [2], [3], [4]]
    assert batches == [[0, 2], [1, 4], [3]]


def test_closing_finishes_what_was_accepted() -> None:
    async def scenario() -> None:
        batcher = Batcher(lambda key, items: list(items))
        waiting = asyncio.create_task(batcher.submit("x", [1], tokens=1))
        await asyncio.sleep(0)
        await batcher.close()
        assert await waiting == [1]

    asyncio.run(scenario())
