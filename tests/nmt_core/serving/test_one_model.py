"""Answers name the model that made them, and a piece of work has answers of one model or ends."""

from __future__ import annotations

import asyncio
import collections
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent import futures
from typing import Any

import grpc
import pytest

from nmt_core.base.errors import ConfigError, ServiceError, Unavailable
from nmt_core.base.interfaces import SentencePair
from nmt_core.serving.client.aio import AsyncNmtClient
from nmt_core.serving.client.client import NmtClient, RemotePairScorer
from nmt_core.serving.client.connection import OneModel
from nmt_core.v1 import nmt_pb2 as pb
from nmt_core.v1 import nmt_pb2_grpc
from tests.nmt_core.serving.test_client import serving

CHANGED = "the model changed during the work"
TEXTS = ["un deux"] * 3
LISTS = [pb.NbestList(source="un", hypotheses=[pb.Hypothesis(target="one")] * 1500)] * 3


class Exchanged(nmt_pb2_grpc.NmtServiceServicer):
    """Its answers have ``fingerprint`` and ``signature``; after ``lasts`` requests it has another fingerprint."""

    def __init__(self, fingerprint: str = "first", signature: str = "s", *, lasts: float = float("inf")) -> None:
        self.made, self.lasts = {"fingerprint": fingerprint, "signature": signature}, lasts

    def _named(self) -> dict[str, str]:
        self.lasts -= 1
        return self.made if self.lasts >= 0 else {**self.made, "fingerprint": "second"}

    def GetModel(self, request, context):
        made = self.made
        model = pb.Model(name="m", version=made["fingerprint"], signature=made["signature"], limits=pb.Limits(items=2))
        return pb.GetModelResponse(model=model)

    def Translate(self, request, context):
        return pb.TranslateResponse(sentences=[pb.Translations() for _ in request.texts], **self._named())

    def Score(self, request, context):
        return pb.ScoreResponse(scores=[pb.PairScore(log_prob=-1.0) for _ in request.pairs], **self._named())

    def Rerank(self, request, context):
        return pb.RerankResponse(rankings=[pb.Ranking() for _ in request.lists], **self._named())

    def Encode(self, request, context):
        return pb.EncodeResponse(vectors=[pb.PhraseVector() for _ in request.texts], **self._named())


async def translated(client: AsyncNmtClient, texts: Any = TEXTS, **options: Any) -> list[int]:
    return [number async for number, _ in client.translate_stream(texts, ahead=2, **options)]


def asynchronous(address: str, ask: Callable[[AsyncNmtClient], Any], **how: Any) -> Any:
    async def scenario() -> Any:
        async with AsyncNmtClient(address, **how) as client:
            return await ask(client)

    return asyncio.run(asyncio.wait_for(scenario(), 60))


SYNC: dict[str, Callable[[NmtClient], Any]] = {
    "translate": lambda client: list(client.translate_lines(TEXTS, window=1)),
    "score": lambda client: list(client.score_pairs([("un", "one")] * 3, window=1)),
    "rerank": lambda client: client.rerank(LISTS),
    "encode": lambda client: client.encode(["un"] * 1200),
}
ASYNC: dict[str, Callable[[AsyncNmtClient], Any]] = {
    "translate": lambda client: client.translate(TEXTS, window=1),
    "stream": translated,
    "score": lambda client: client.score([("un", "one")] * 5000),
    "rerank": lambda client: client.rerank(LISTS),
    "encode": lambda client: client.encode(["un"] * 1200),
}


def answers_of(address: str, kind: str, name: str) -> list[Any]:
    if kind == "asyncio":
        return asynchronous(address, ASYNC[name])
    with NmtClient(address) as client:
        return SYNC[name](client)


@pytest.mark.parametrize(("kind", "name"), [*(("sync", one) for one in SYNC), *(("asyncio", one) for one in ASYNC)])
def test_all_answers_of_a_call_are_of_one_model(kind: str, name: str) -> None:
    with serving(Exchanged(lasts=3)) as address:
        assert len(answers_of(address, kind, name)) in (3, 1200, 5000)
    change = r"\(it was (first, now second|second, now first)\)"
    with serving(Exchanged(lasts=2)) as address, pytest.raises(ServiceError, match=f"{address}: {CHANGED} {change}"):
        answers_of(address, kind, name)


def test_another_call_may_be_of_another_model_unless_all_have_to_be_of_one() -> None:
    with serving(Exchanged(lasts=1)) as address:
        client = NmtClient(address)
        assert len(client.translate(["un"])) == len(client.translate(["un"])) == 1
    with serving(Exchanged(lasts=1)) as address:
        client = NmtClient(address, one_model=OneModel())
        client.translate(["un"])
        with pytest.raises(ServiceError, match=CHANGED):
            client.score([("un", "one")])


def test_a_scorer_is_the_model_that_it_described_to_the_end() -> None:
    pairs = [SentencePair("un", "one")] * 2
    with serving(Exchanged(lasts=1)) as address:
        scorer = RemotePairScorer(address)
        assert len(scorer.score(pairs)) == 2
        with pytest.raises(ServiceError, match=CHANGED):
            scorer.score(pairs)
        scorer.close()
    with serving(Exchanged(lasts=0)) as address, pytest.raises(ServiceError, match=CHANGED):
        RemotePairScorer(address).score(pairs)  # exchanged after it was described


@pytest.mark.parametrize("other", [{"fingerprint": "other"}, {"signature": "other"}])
def test_an_address_that_was_away_at_the_start_is_compared_when_it_answers(other: dict[str, str]) -> None:
    """One that comes back with another model, or on another processor, does not share the work."""
    late = Exchanged(**other)
    with serving(Exchanged()) as first:
        with serving(late) as second, pytest.raises(ServiceError, match="the servers differ in model or arithmetic"):
            RemotePairScorer(f"{first},{second}")
        scorer = RemotePairScorer(f"{first},{second}", first_wait=0.01)
        assert len(scorer.score([SentencePair("un", "one")] * 4)) == 4
        server = grpc.server(futures.ThreadPoolExecutor(2))
        nmt_pb2_grpc.add_NmtServiceServicer_to_server(late, server)
        assert server.add_insecure_port(second)
        server.start()
        try:
            with pytest.raises(ServiceError, match=rf"{second}: {CHANGED}"):
                scorer.score([SentencePair("un", "one")] * 4000)
        finally:
            server.stop(0).wait()


def test_a_server_names_the_model_in_every_answer(both) -> None:
    """Each method's, and those of streams; as it is in the list of models."""
    client = NmtClient(both.address)
    described = {model.name: (model.version, model.signature) for model in client.models()}
    lists = [pb.NbestList(source="un", hypotheses=[pb.Hypothesis(target="one")])]
    requests: dict[str, Any] = {
        "Translate": pb.TranslateRequest(texts=["un"]),
        "Score": pb.ScoreRequest(pairs=[pb.Pair(source="un", target="one")]),
        "Rerank": pb.RerankRequest(lists=lists),
        "Encode": pb.EncodeRequest(texts=["un"]),
    }
    stub, _ = client.connection.next_stub()
    for name, expected in described.items():
        assert all(expected)
        for method, request in requests.items():
            if method == "Encode" and name != "phrases":
                continue
            request.model = name
            answer = client.call(method, request)
            assert (answer.fingerprint, answer.signature) == expected
        for answers in (
            stub.TranslateStream(iter([pb.TranslateStreamRequest(id="1", request=requests["Translate"])])),
            stub.ScoreStream(iter([pb.ScoreStreamRequest(id="1", request=requests["Score"])])),
        ):
            [answer] = answers
            assert (answer.response.fingerprint, answer.response.signature) == expected
    assert len(set(described.values())) == 2


class Down(nmt_pb2_grpc.NmtServiceServicer):
    """A server that is away for the first ``failures`` attempts at a text."""

    def __init__(self, failures: float) -> None:
        self.failures, self.asked = failures, collections.Counter[str]()

    def Translate(self, request, context):
        (text,) = request.texts
        self.asked[text] += 1
        if self.asked[text] <= self.failures:
            context.abort(grpc.StatusCode.UNAVAILABLE, "the device cpu has failed")
        return pb.TranslateResponse(sentences=[pb.Translations()])


@pytest.mark.parametrize("count", [3, 100])
def test_a_stream_that_brings_no_answers_ends_after_the_tries_of_a_call(count: int) -> None:
    down = Down(float("inf"))
    with serving(down) as address, pytest.raises(Unavailable, match="the device cpu has failed"):
        asynchronous(address, lambda client: translated(client, map(str, range(count))), first_wait=0.01)
    assert max(down.asked.values()) == 5 and len(down.asked) <= 2  # as many as are in progress at once


def test_no_text_is_lost_where_a_server_is_away_for_a_while() -> None:
    """Nor is the place of one that is asked again, while more come."""
    down = Down(2)

    async def slow() -> AsyncIterator[str]:
        for number in range(9):
            yield str(number)
            while down.asked[str(number)] < 2:
                await asyncio.sleep(0.01)

    with serving(down) as address:
        found = asynchronous(address, lambda client: translated(client, slow()), first_wait=0.01)
    assert sorted(found) == list(range(9))
    assert set(down.asked.values()) == {3}


def test_what_is_wrong_with_texts_or_options_ends_the_stream() -> None:
    """Texts that were sent before are answered first."""

    def broken() -> Iterator[str]:
        yield "un"
        raise OSError("the texts end here")

    async def broken_later() -> AsyncIterator[str]:
        for text in broken():
            yield text

    with serving(Exchanged()) as address:
        for texts in (broken, broken_later):
            with pytest.raises(OSError, match="the texts end here"):
                asynchronous(address, lambda client: translated(client, texts()))  # noqa: B023 (called at once)
        with pytest.raises(ConfigError, match="bogus"):
            asynchronous(address, lambda client: translated(client, bogus=3))
