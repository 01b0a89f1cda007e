"""How messages are read, and what the server spends on each call: wake-ups of threads, and turns that they take."""

from __future__ import annotations

import asyncio
import re
import sys
import threading
from types import SimpleNamespace
from typing import Any

import pytest
from google.rpc import code_pb2

from nmt_core.serving.admission import _request_id
from nmt_core.serving.engine.engine import Engine
from nmt_core.serving.engine.work import BatchWork
from nmt_core.serving.errors import RpcError
from nmt_core.serving.limits import Limits
from nmt_core.serving.wire import MessageReader
from nmt_core.v1 import nmt_pb2 as pb
from tests.nmt_core.serving.in_process import one_pair, serving
from tests.nmt_core.serving.test_engine import asked, submit


async def test_a_batch_that_fills_wakes_the_thread_once_and_its_answers_the_event_loop_once(monkeypatch) -> None:
    woken, chosen = [], []

    engine, loop = Engine(lambda key: BatchWork("test", list), limits=Limits(delay=1.5)), asyncio.get_running_loop()
    await submit(engine, "x", [0])  # the thread runs
    choose, wake = engine._queues.choose, loop.call_soon_threadsafe
    monkeypatch.setattr(engine._queues, "choose", lambda: (chosen.append(1), choose())[1])
    monkeypatch.setattr(loop, "call_soon_threadsafe", lambda *call: (woken.append(1), wake(*call))[1])
    jobs = []
    for number in range(30):
        jobs.append(asked(engine, "x", [number]))
        await asyncio.sleep(0.005)
    assert await asyncio.gather(*jobs) == [[number] for number in range(30)]
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


class Context:
    """A call whose message comes when the test lets it."""

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
    reader, slow = MessageReader(Limits(body=60.0)), Context()
    reading = asyncio.create_task(reader.first(slow, "a"))
    await asyncio.sleep(0.2)
    slow.send(b"slow")
    assert await reading == b"slow"
    late = MessageReader(Limits(body=0.5)).first(Context(), "a")
    with pytest.raises(RpcError) as caught:
        await late
    assert (caught.value.code, caught.value.reason) == (code_pb2.DEADLINE_EXCEEDED, "SLOW_MESSAGE")
    assert str(caught.value) == "the request did not arrive within 0.5 s"


def test_a_message_has_as_many_bytes_as_are_allowed() -> None:
    """A question for the health has 64 KiB; with a limit of 10 items others have 94 fields: 3 of an item, and 64."""
    handler: Any = SimpleNamespace(request_deserializer=len)
    few, small = MessageReader(Limits(items=10)), MessageReader(Limits(), 9)
    for reader, field, most, problem in (
        (small, b"x", 9, "the request has 10 bytes; at most 9"),
        (few, b"\x12\x00", 94, "the request has more fields than 10 items need; send several requests"),
    ):
        assert reader.parse(handler, "Translate", field * most) == most * len(field)
        with pytest.raises(RpcError) as caught:
            reader.parse(handler, "Translate", field * (most + 1))
        assert (str(caught.value), caught.value.reason) == (problem, "TOO_MANY_ITEMS")


@pytest.mark.parametrize(
    ("given", "kept"), [("job 7", True), ("x" * 128, True), ("x" * 129, False), ("", False), ("a\x7f", False)]
)
def test_an_id_of_a_call_is_the_caller_s_where_it_can_be_logged(given: str, kept: bool) -> None:
    found = _request_id(SimpleNamespace(invocation_metadata=lambda: [("x-request-id", given)]))
    assert found == given if kept else re.fullmatch("[0-9a-f]{32}", found)
