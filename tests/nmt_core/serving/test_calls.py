"""What the server spends on each call: wake-ups of threads, turns that they take, ids."""

from __future__ import annotations

import asyncio
import sys
import threading

import pytest

from nmt_core.serving.engine.engine import Engine
from nmt_core.serving.engine.work import BatchWork
from nmt_core.serving.wire import MessageReader
from nmt_core.v1 import nmt_pb2 as pb
from tests.nmt_core.serving.in_process import one_pair, serving
from tests.nmt_core.serving.test_engine import submit


async def test_a_batch_that_fills_wakes_the_thread_once_and_its_answers_the_event_loop_once(monkeypatch) -> None:
    woken, chosen = [], []

    engine, loop = Engine(lambda key: BatchWork("test", list), delay=1.5), asyncio.get_running_loop()
    await submit(engine, "x", [0], tokens=[1])  # the thread runs
    choose, wake = engine._queues.choose, loop.call_soon_threadsafe
    monkeypatch.setattr(engine._queues, "choose", lambda: (chosen.append(1), choose())[1])
    monkeypatch.setattr(loop, "call_soon_threadsafe", lambda *call: (woken.append(1), wake(*call))[1])
    asked = []
    for number in range(30):
        asked.append(asyncio.create_task(submit(engine, "x", [number], tokens=[1])))
        await asyncio.sleep(0.005)
    assert await asyncio.gather(*asked) == [[number] for number in range(30)]
    await engine.close()
    assert len(woken) == 1
    assert len(chosen) < 10  # and not after each of the jobs


@pytest.mark.parametrize(("size", "beside"), [(100, False), (1 << 20, True)])
@pytest.mark.parametrize("streams", [False, True])
async def test_large_messages_are_counted_and_parsed_beside_the_event_loop(
    size: int, beside: bool, streams: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads: list[bool] = []
    parse = MessageReader.parse

    def watched(self: MessageReader, *arguments: object) -> object:
        threads.append(threading.current_thread() is not threading.main_thread())
        return parse(self, *arguments)

    monkeypatch.setattr(MessageReader, "parse", watched)
    request = one_pair("a" * size)

    async with serving() as running:
        if streams:
            call = running.stub.ScoreStream(iter([pb.ScoreStreamRequest(request=request)]))
            assert len((await call.read()).response.scores) == 1
        else:
            assert len((await running.stub.Score(request)).scores) == 1
    assert threads == [beside]


async def test_a_server_lets_python_change_often_between_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    intervals: list[float] = []
    monkeypatch.setattr(sys, "setswitchinterval", intervals.append)

    async with serving(loads=False):
        pass
    assert max(intervals) < 0.001
