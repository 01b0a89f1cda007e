"""Timers of one length: they end in order, and the event loop has one for all of them."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace

import pytest

from nmt_core.serving.timers import Timers


def test_timers_end_in_order_without_those_that_were_cancelled() -> None:
    ended: list[int] = []

    async def scenario() -> None:
        timers, done = Timers(0.01), asyncio.Event()
        for number in range(4):
            timers.start(number, lambda number=number: ended.append(number))
        timers.cancel(1)
        timers.cancel(1)
        timers.start(4, lambda: (ended.append(4), timers.start(5, done.set)))
        timers.cancel(6)
        await done.wait()
        timers.start(7, done.clear)  # the next one after all have ended
        while done.is_set():
            await asyncio.sleep(0.001)

    asyncio.run(asyncio.wait_for(scenario(), 60))
    assert ended == [0, 2, 3, 4]


def test_the_event_loop_has_one_timer_for_all() -> None:
    async def scenario() -> int:
        loop, timers = asyncio.get_running_loop(), Timers(60.0)
        before = len(loop._scheduled)
        for number in range(1000):
            timers.start(number, lambda: None)
            timers.cancel(number - 1)
        return len(loop._scheduled) - before

    assert asyncio.run(scenario()) == 1


def test_a_timer_that_fails_or_starts_another_delays_none() -> None:
    """The event loop is asked for the first of those that are left, not for the one that was started last."""
    asked: list[float] = []

    async def scenario() -> None:
        timers = Timers(60.0)

        def fail() -> None:
            timers.start(2, lambda: None)
            raise ValueError("broken")

        timers.start(0, fail)
        timers.start(1, lambda: None)
        clock = SimpleNamespace(time=lambda: first, call_at=lambda end, *rest: asked.append(end))
        first, second = (timers._running[key][0] for key in (0, 1))
        with pytest.raises(ValueError, match="broken"):
            timers._end(clock)  # type: ignore[arg-type]  # what it needs of an event loop
        assert asked == [second]

    asyncio.run(scenario())
