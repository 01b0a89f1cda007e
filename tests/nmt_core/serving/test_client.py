"""The client against servers that misbehave: what is asked, what is asked again, and what a user reads."""

from __future__ import annotations

import asyncio
import math
import threading
import time
from collections.abc import Iterator
from concurrent import futures
from contextlib import contextmanager
from pathlib import Path

import grpc
import pytest

from nmt_core.base.errors import ConfigError, Overloaded, ServiceError, Unavailable
from nmt_core.base.interfaces import SentencePair
from nmt_core.commands.main import main
from nmt_core.serving.client.aio import AsyncNmtClient
from nmt_core.serving.client.client import NmtClient, RemotePairScorer
from nmt_core.serving.client.connection import Access
from nmt_core.v1 import nmt_pb2 as pb
from nmt_core.v1 import nmt_pb2_grpc


class Scripted(nmt_pb2_grpc.NmtServiceServicer):
    """Scores a pair by the length of its target, after the failures that were ordered.

    With ``together`` scores are answered when so many requests are in progress. ``lose`` answers are missing.
    """

    def __init__(
        self, *failures: grpc.StatusCode, signature: str = "s", together: int = 1, lose: int = 0, **limits: int
    ) -> None:
        self.failures, self.limits, self.signature, self.lose = list(failures), limits, signature, lose
        self.asked: list[int] = []
        self.at_once = self.most_at_once = 0
        self.together = threading.Barrier(together)
        self.lock = threading.Lock()

    def GetModel(self, request, context):
        return pb.GetModelResponse(model=pb.Model(name="m", signature=self.signature, limits=pb.Limits(**self.limits)))

    def Translate(self, request, context):
        self.asked.append(len(request.texts))
        return pb.TranslateResponse(sentences=[pb.Translations() for _ in request.texts])

    def Rerank(self, request, context):
        self.asked.append(sum(len(one.hypotheses) for one in request.lists))
        totals = [pb.RankedHypothesis(total=len(request.columns) * len(one.hypotheses)) for one in request.lists]
        return pb.RerankResponse(rankings=[pb.Ranking(hypotheses=[one]) for one in totals])

    def Encode(self, request, context):
        self.asked.append(len(request.texts))
        return pb.EncodeResponse(vectors=[pb.PhraseVector(values=[len(text)]) for text in request.texts])

    def Score(self, request, context):
        with self.lock:
            self.asked.append(len(request.pairs))
            self.at_once += 1
            self.most_at_once = max(self.most_at_once, self.at_once)
            failure = self.failures.pop(0) if self.failures else None
        self.together.wait(30)
        with self.lock:
            self.at_once -= 1
        if failure is not None:
            context.abort(failure, "as ordered")
        scores = [pb.PairScore(log_prob=-len(pair.target)) for pair in request.pairs]
        return pb.ScoreResponse(scores=scores[self.lose :])


@contextmanager
def serving(servicer: nmt_pb2_grpc.NmtServiceServicer, *, message_bytes: int = 32 << 20) -> Iterator[str]:
    server = grpc.server(futures.ThreadPoolExecutor(8), options=[("grpc.max_receive_message_length", message_bytes)])
    nmt_pb2_grpc.add_NmtServiceServicer_to_server(servicer, server)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    try:
        yield f"127.0.0.1:{port}"
    finally:
        server.stop(0).wait()


def pairs_of_lengths(lengths: list[int]) -> list[SentencePair]:
    return [SentencePair("s", "x" * length) for length in lengths]


SMILE = "\N{GRINNING FACE}"  # four bytes


@pytest.mark.parametrize(
    ("limits", "lengths", "asked"),
    [
        ({}, [number % 7 for number in range(15_000)], [1000] + 7 * [2000]),
        ({}, [200_000] * 30, [2] * 15),
        ({"items": 3}, [1] * 8, [2, 3, 3]),
        ({"request_bytes": 1 << 20, "message_bytes": 32 << 20}, [50_000] * 6, [2] * 3),
        ({"message_bytes": 1 << 20}, [50_000] * 6, [2] * 3),  # a server of before ``request_bytes``
    ],
    ids=["number", "size", "few items", "small requests", "small messages"],
)
def test_pairs_go_in_requests_that_the_server_takes(
    limits: dict[str, int], lengths: list[int], asked: list[int]
) -> None:
    servicer = Scripted(**limits)
    pairs = [SentencePair(SMILE * length, SMILE * length) for length in lengths]
    with serving(servicer, message_bytes=limits.get("message_bytes", 32 << 20)) as address:
        scores = RemotePairScorer(address).score(pairs)
    assert [-score.log_prob for score in scores] == lengths
    assert sorted(servicer.asked) == asked


def test_a_few_requests_are_in_progress_at_once() -> None:
    servicer = Scripted(together=4)
    with serving(servicer) as address:
        assert len(RemotePairScorer(address).score(pairs_of_lengths([1] * 16_000))) == 16_000
    assert servicer.most_at_once == 4


def test_long_texts_go_in_requests_of_bounded_size() -> None:
    servicer = Scripted()
    long = SMILE * 20_000  # 80 kB; 200 of them are 15 MiB

    async def translated(address: str) -> int:
        async with AsyncNmtClient(address) as client:
            return len(await client.translate([long] * 200))

    with serving(servicer, message_bytes=8 << 20) as address:
        with NmtClient(address) as client:
            assert len(client.translate([long] * 200)) == 200
        assert asyncio.run(translated(address)) == 200
    assert sorted(servicer.asked) == [44] * 2 + [52] * 6


def test_phrases_and_nbest_lists_go_in_requests_of_bounded_size() -> None:
    """Together they are more than one request may have."""
    servicer = Scripted()
    lengths = [number % 9 for number in range(1200)] + [20_000] * 200
    texts = [SMILE * length for length in lengths]
    sizes = [900, 1000, 0, 700, *[3] * 130]
    word = {900: "a", 1000: "a", 0: "a", 700: "a", 3: SMILE * 20_000}
    lists = [pb.NbestList(hypotheses=[pb.Hypothesis(target=word[size])] * size) for size in sizes]
    columns = [pb.FeatureColumn(name="LM0")]

    async def asked(address: str) -> tuple[list[pb.PhraseVector], list[pb.Ranking]]:
        async with AsyncNmtClient(address) as client:
            return await client.encode(texts), await client.rerank(iter(lists), columns=columns)

    with serving(servicer, message_bytes=8 << 20) as address:
        with NmtClient(address) as client:
            found = client.encode(texts), client.rerank(iter(lists), columns=columns)
        assert servicer.asked and max(servicer.asked) <= 2000
        for vectors, rankings in (found, asyncio.run(asked(address))):
            assert [vector.values[0] for vector in vectors] == lengths
            assert [ranking.hypotheses[0].total for ranking in rankings] == sizes


def test_a_wrong_option_is_named_before_anything_is_sent() -> None:
    client = NmtClient("127.0.0.1:1")
    for ask in (client.translate, client.encode, client.rerank):
        with pytest.raises(ConfigError, match=r"an option of a \w+ request is wrong: .*bogus"):
            ask([pb.NbestList()] if ask == client.rerank else ["a"], bogus=3)


@pytest.mark.parametrize("code", [grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.RESOURCE_EXHAUSTED])
def test_a_server_that_is_busy_or_away_for_a_moment_is_asked_again(code: grpc.StatusCode) -> None:
    servicer = Scripted(code, code, code, items=2)
    lengths = [3, 1, 4, 1, 5, 9, 2, 6]
    with serving(servicer) as address:
        scores = RemotePairScorer(address, first_wait=0.01).score(pairs_of_lengths(lengths))
    assert [-score.log_prob for score in scores] == lengths
    assert len(servicer.asked) == 7


@pytest.mark.parametrize(
    ("code", "tries", "error", "text"),
    [
        (grpc.StatusCode.UNAVAILABLE, 5, Unavailable, r"nothing answers at .* \(as ordered\); is 'nmt-core serve'"),
        (grpc.StatusCode.RESOURCE_EXHAUSTED, 10, Overloaded, "as ordered"),
        (grpc.StatusCode.INVALID_ARGUMENT, 1, ServiceError, r"as ordered \(INVALID_ARGUMENT\)"),
        (grpc.StatusCode.INTERNAL, 1, ServiceError, r"as ordered \(INTERNAL\)"),
    ],
)
def test_what_does_not_pass_is_one_clear_error(code, tries: int, error: type[ServiceError], text: str) -> None:
    servicer = Scripted(*[code] * 50)
    with serving(servicer) as address:
        with pytest.raises(error, match=text) as caught:
            RemotePairScorer(address, first_wait=0.001).score(pairs_of_lengths([1]))
        assert len(servicer.asked) == tries
    assert "\n" not in str(caught.value)


def test_an_answer_that_does_not_come_in_time_is_an_error() -> None:
    servicer = Scripted(together=2)
    with serving(servicer) as address:
        with pytest.raises(ServiceError, match=r"gave no answer within 0\.3 s"):
            RemotePairScorer(address, timeout=0.3).score(pairs_of_lengths([1]))
        servicer.together.abort()


def test_answers_that_are_missing_are_an_error() -> None:
    with serving(Scripted(lose=1)) as address, pytest.raises(ServiceError, match="3 answers for 4 pairs"):
        RemotePairScorer(address).score(pairs_of_lengths([1, 2, 3, 4]))


def test_another_service_at_the_address_is_named_as_such() -> None:
    with (
        serving(nmt_pb2_grpc.NmtServiceServicer()) as address,
        pytest.raises(ServiceError, match="is not an 'nmt-core serve' of this version"),
    ):
        RemotePairScorer(address)


@pytest.mark.parametrize("away", [False, True])
def test_several_servers_share_the_work(away: bool) -> None:
    """One that is away is made up for by the other."""
    servicers = [Scripted(items=10), Scripted(items=10)]
    lengths = [number % 7 for number in range(200)]
    with serving(servicers[0]) as first, serving(servicers[1]) as second:
        scorer = RemotePairScorer(f"{'127.0.0.1:1' if away else first},{second}", first_wait=0.01)
        assert [-score.log_prob for score in scorer.score(pairs_of_lengths(lengths))] == lengths
    assert [sum(servicer.asked) for servicer in servicers] == ([0, 200] if away else [100, 100])


def test_servers_with_different_models_are_not_mixed() -> None:
    with (
        serving(Scripted()) as first,
        serving(Scripted(signature="t")) as second,
        pytest.raises(ServiceError, match=r"the servers differ in model or arithmetic \(s; t\)"),
    ):
        RemotePairScorer(f"{first},{second}")


@pytest.mark.parametrize(
    "address", ["localhost", "localhost:", ":50551", "a:1,", "a:1,b", "a:x", "a:0", "a:65536", "\udcff:1"]
)
def test_an_address_that_is_none_is_named(address: str) -> None:
    with pytest.raises(ConfigError, match="expected HOST:PORT"):
        NmtClient(address)


@pytest.mark.parametrize("seconds", [0.0, -1.0, 1e300, math.inf, math.nan])
def test_a_timeout_that_cannot_be_kept_is_refused(seconds: float) -> None:
    with pytest.raises(ConfigError, match="expected more than 0, at most 1000000"):
        NmtClient("127.0.0.1:1", timeout=seconds).models()


@pytest.mark.parametrize("token", ["t\u00f6ken", "to\x01ken", "to\nken"])
def test_a_token_that_no_message_can_carry_is_refused(token: str) -> None:
    with pytest.raises(ConfigError, match="not printable ASCII"):
        Access(token=token)


def test_files_that_are_no_certificates_are_named(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "file"
    path.write_text("hello\n")
    for options, kind in (("--tls-ca", "CERTIFICATE"), ("--tls-cert", "CERTIFICATE"), ("--tls-key", "PRIVATE KEY")):
        other = {"--tls-cert": "--tls-key", "--tls-key": "--tls-cert"}.get(options)
        (tmp_path / "good").write_text("-----BEGIN CERTIFICATE-----\n-----BEGIN PRIVATE KEY-----\n")
        files = [options, str(path), *([other, str(tmp_path / "good")] if other else [])]
        assert main(["client", "health", *files]) == 2
        assert capfd.readouterr().err == f"nmt-core client: {path}: expected a PEM file with a {kind}\n"


def test_a_call_never_takes_longer_than_its_timeout() -> None:
    begin = time.monotonic()
    with pytest.raises(Unavailable):
        NmtClient("127.0.0.1:1", timeout=0.5, first_wait=0.2).models()
    assert time.monotonic() - begin < 30  # as long as it is loaded; five attempts take three
