"""Streams: answers as they finish, what one of them may have under way, clients that are slow or go away."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator

import grpc
import pytest

from nmt_core.serving import streams
from nmt_core.serving.client.aio import AsyncNmtClient
from nmt_core.serving.client.client import NmtClient
from nmt_core.serving.limits import Limits
from nmt_core.serving.streams import Stream
from nmt_core.v1 import nmt_pb2 as pb
from tests.nmt_core.serving.in_process import one_pair, serving
from tests.nmt_core.serving.support import metrics_of, refusal_of, wait_for_quiet

TEXTS = ["un " * (1 + number % 7) + "deux" for number in range(150)]


def translation(number: int, **options) -> pb.TranslateStreamRequest:
    return pb.TranslateStreamRequest(id=f"no {number}", request=pb.TranslateRequest(texts=[TEXTS[number]], **options))


def test_every_request_of_a_stream_is_answered_once_with_its_id(server) -> None:
    answers = list(server.stub.TranslateStream(translation(number) for number in range(150)))
    expected = NmtClient(server.address).translate(TEXTS)
    found = {answer.id: answer.response.sentences[0].translations[0].text for answer in answers}
    assert len(answers) == 150
    assert found == {f"no {number}": one.translations[0].text for number, one in enumerate(expected)}


def test_a_request_that_is_refused_does_not_end_the_stream(server) -> None:
    ids = [pb.TranslateStreamRequest(id=letter * length) for letter, length in (("x", 129), ("y", 128))]
    requests = [translation(0), translation(1, beam=11), *ids, translation(2)]
    answers = {answer.id: answer for answer in server.stub.TranslateStream(iter(requests))}
    assert answers["no 1"].error.reason == "BAD_OPTION"
    assert answers["x" * 128].error.message == "the id has 129 characters; at most 128"
    assert answers["y" * 128].HasField("response")
    assert answers["no 0"].HasField("response")
    assert answers["no 2"].HasField("response")


def test_a_stream_without_requests_ends(server) -> None:
    assert list(server.stub.TranslateStream(iter([]))) == []


def test_streams_beyond_the_limit_are_refused_and_make_room_when_they_end(server) -> None:
    end = threading.Event()

    def held_open() -> Iterator[pb.TranslateStreamRequest]:
        yield translation(3)
        end.wait(200)

    try:
        first = [server.stub.TranslateStream(held_open()) for _ in range(50)]
        assert all(next(call).HasField("response") for call in first)
        assert metrics_of(server)['nmt_calls_open{kind="stream"}'] == 50
        for _ in range(200):
            rejected = refusal_of(lambda: list(server.stub.TranslateStream(iter([translation(3)]), timeout=30)))
            assert rejected == (grpc.StatusCode.RESOURCE_EXHAUSTED, "TOO_MANY_STREAMS")
    finally:
        end.set()
    assert [list(call) for call in first] == [[]] * 50
    assert list(server.stub.TranslateStream(iter([translation(3)])))
    wait_for_quiet(server)


async def test_a_client_that_goes_away_leaves_nothing_behind(server) -> None:
    async with AsyncNmtClient(server.address) as client:
        calls = [asyncio.create_task(client.translate(TEXTS, beam=10)) for _ in range(10)]
        await asyncio.sleep(0.05)
        for call in calls:
            call.cancel()
        await asyncio.gather(*calls, return_exceptions=True)
    wait_for_quiet(server)
    assert NmtClient(server.address, timeout=5).translate(["un"])[0].translations


async def test_the_asyncio_client_answers_as_texts_finish(server) -> None:
    async with AsyncNmtClient(server.address) as client:
        found = {n: one.translations[0].text async for n, one in client.translate_stream(TEXTS, ahead=10)}
    assert found == {n: one.translations[0].text for n, one in enumerate(NmtClient(server.address).translate(TEXTS))}


async def test_a_stream_has_as_many_requests_under_way_as_its_limit_says(monkeypatch: pytest.MonkeyPatch) -> None:
    under_way: list[int] = []
    count = Stream._count

    def noted(self: Stream, requests: int) -> None:
        count(self, requests)
        under_way.append(self._in_progress)

    monkeypatch.setattr(Stream, "_count", noted)
    async with serving(Limits(stream_requests=2)) as (_, gate, _, _, stub):
        gate.close()
        requests = (pb.ScoreStreamRequest(id=str(number), request=one_pair()) for number in range(6))
        stream = stub.ScoreStream(requests)
        await gate.is_entered()
        await asyncio.sleep(0.2)  # in which the others could come
        gate.open.set()
        assert len([answer async for answer in stream]) == 6
    assert max(under_way) == 2


async def test_requests_of_a_stream_wait_while_the_queue_is_full(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "_PAUSE", 0.01)
    async with serving(Limits(queue=1, client_queue=1)) as (_, gate, _, _, stub):
        gate.close()
        stream = stub.ScoreStream(pb.ScoreStreamRequest(id=str(number), request=one_pair()) for number in range(4))
        await gate.is_entered()
        await asyncio.sleep(0.1)  # in which the others find no room
        gate.open.set()
        answers = [answer async for answer in stream]
    assert sorted(answer.id for answer in answers if answer.HasField("response")) == ["0", "1", "2", "3"]
