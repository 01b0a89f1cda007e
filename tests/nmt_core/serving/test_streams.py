"""Streams: answers as they finish, what one of them may have under way, clients that are slow or go away."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from urllib.request import urlopen

import grpc
import pytest

from nmt_core.base.errors import ServiceError
from nmt_core.serving.client.aio import AsyncNmtClient
from nmt_core.serving.client.client import NmtClient
from nmt_core.serving.wire import in_stream
from nmt_core.v1 import nmt_pb2 as pb
from nmt_core.v1 import nmt_pb2_grpc

TEXTS = ["un " * (1 + number % 7) + "deux" for number in range(150)]


def stub_of(channel) -> nmt_pb2_grpc.NmtServiceStub:
    return nmt_pb2_grpc.NmtServiceStub(channel)


def translation(number: int, **options) -> pb.TranslateStreamRequest:
    return pb.TranslateStreamRequest(id=f"no {number}", request=pb.TranslateRequest(texts=[TEXTS[number]], **options))


def _score_answer(size: int) -> bytes:
    """With so many bytes of weights."""
    return pb.ScoreResponse(scores=[pb.PairScore(attention=[1.0] * (size // 4))]).SerializeToString()


def test_every_request_of_a_stream_is_answered_once_with_its_id(server) -> None:
    with grpc.insecure_channel(server.address) as channel:
        answers = list(stub_of(channel).TranslateStream(translation(number) for number in range(150)))
    expected = NmtClient(server.address).translate(TEXTS)
    found = {answer.id: answer.response.sentences[0].translations[0].text for answer in answers}
    assert len(answers) == 150
    assert found == {f"no {number}": one.translations[0].text for number, one in enumerate(expected)}


def test_scores_stream_too(server) -> None:
    pairs = [(text, "one two") for text in TEXTS[:20]]
    requests = [
        pb.ScoreStreamRequest(id=str(number), request=pb.ScoreRequest(pairs=[pb.Pair(source=source, target=target)]))
        for number, (source, target) in enumerate(pairs)
    ]
    with grpc.insecure_channel(server.address) as channel:
        answers = {int(answer.id): answer.response.scores[0] for answer in stub_of(channel).ScoreStream(iter(requests))}
    expected = NmtClient(server.address).score(pairs)
    for number, score in enumerate(expected):
        assert answers[number].log_prob == pytest.approx(score.log_prob, abs=1e-5)


def test_a_request_that_is_refused_does_not_end_the_stream(server) -> None:
    requests = [translation(0), translation(1, beam=11), pb.TranslateStreamRequest(id="x" * 200), translation(2)]
    with grpc.insecure_channel(server.address) as channel:
        answers = {answer.id: answer for answer in stub_of(channel).TranslateStream(iter(requests))}
    assert answers["no 1"].error.reason == "BAD_OPTION"
    assert "at most 128" in answers["x" * 128].error.message
    assert answers["no 0"].HasField("response")
    assert answers["no 2"].HasField("response")


def test_a_stream_of_garbage_ends_with_its_status(server) -> None:
    with grpc.insecure_channel(server.address) as channel:
        call = channel.stream_stream("/nmt_core.v1.NmtService/TranslateStream")(iter([b"\xff\xff"]))
        with pytest.raises(grpc.RpcError) as caught:
            list(call)
    assert caught.value.code() == grpc.StatusCode.INVALID_ARGUMENT


def test_a_stream_without_requests_ends(server) -> None:
    with grpc.insecure_channel(server.address) as channel:
        assert list(stub_of(channel).TranslateStream(iter([]))) == []


def test_thousands_of_streams_are_refused_but_the_first(server) -> None:
    end = threading.Event()

    def held_open() -> Iterator[pb.TranslateStreamRequest]:
        yield translation(3)
        end.wait(200)

    def outcome(stub: nmt_pb2_grpc.NmtServiceStub) -> object:
        try:
            return list(stub.TranslateStream(iter([translation(3)]), timeout=30))
        except grpc.RpcError as error:
            return error.code()

    with grpc.insecure_channel(server.address) as channel, ThreadPoolExecutor(20) as pool:
        stub = stub_of(channel)
        try:
            first = [stub.TranslateStream(held_open()) for _ in range(50)]
            assert all(next(call).HasField("response") for call in first)
            outcomes = list(pool.map(outcome, [stub] * 2000))
            assert outcomes == [grpc.StatusCode.RESOURCE_EXHAUSTED] * 2000
        finally:
            end.set()
        assert [list(call) for call in first] == [[]] * 50
        assert isinstance(outcome(stub), list)
    wait_for_quiet(server)


def test_a_reader_that_does_not_read_holds_up_nobody_but_itself(server) -> None:
    async def scenario() -> tuple[int, float]:
        async with grpc.aio.insecure_channel(server.address) as channel:
            call = stub_of(channel).TranslateStream()
            sent = 0

            async def send() -> None:
                nonlocal sent
                for number in range(5000):
                    request = pb.TranslateRequest(texts=["un " * 12] * 400, with_attention=True, nbest=9, beam=9)
                    await call.write(pb.TranslateStreamRequest(id=str(number), request=request))
                    sent += 1

            sender = asyncio.create_task(send())
            await asyncio.sleep(1.5)
            begin = time.monotonic()
            async with AsyncNmtClient(server.address) as other:
                assert (await other.translate(["un"]))[0].translations
            waited = time.monotonic() - begin
            sender.cancel()
            call.cancel()
            return sent, waited

    sent, waited = asyncio.run(scenario())
    assert sent < 5000
    assert waited < 30
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


def test_answers_of_streams_have_the_id_of_their_request() -> None:
    for size in (10, 2 << 20):
        answer = pb.ScoreStreamResponse.FromString(in_stream("a", _score_answer(size)))
        assert answer.id == "a" and len(answer.response.scores[0].attention) == size // 4


def test_a_deadline_is_kept(server) -> None:
    client = NmtClient(server.address, timeout=0.05)
    with pytest.raises(ServiceError, match=r"no answer within 0\.05 s"):
        client.translate(TEXTS * 20, window=3000, beam=10)
    wait_for_quiet(server)


def test_the_asyncio_client_answers_as_texts_finish(server) -> None:
    async def scenario() -> dict[int, str]:
        async with AsyncNmtClient(server.address) as client:
            return {
                number: sentence.translations[0].text or sentence.error.message
                async for number, sentence in client.translate_stream(TEXTS, ahead=10)
            }

    found = asyncio.run(scenario())
    assert found == {n: one.translations[0].text for n, one in enumerate(NmtClient(server.address).translate(TEXTS))}


def wait_for_quiet(server) -> None:
    """Nothing waits, nothing runs, nothing is open but what asks for it."""
    end = time.monotonic() + 10
    while time.monotonic() < end:
        values = metrics_of(server)
        quiet = ('nmt_queue_tokens{device="cpu"}', 'nmt_running_items{device="cpu"}', 'nmt_calls_open{kind="stream"}')
        if all(values.get(name, 0) == 0 for name in quiet):
            return
        time.sleep(0.02)
    raise AssertionError(values)


def metrics_of(server) -> dict[str, float]:
    with urlopen(server.metrics, timeout=10) as answer:
        lines = answer.read().decode().split("\n")
    return {
        name: float(value) for name, _, value in (line.rpartition(" ") for line in lines if line and line[0] != "#")
    }
