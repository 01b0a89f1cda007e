"""Nothing is read, parsed, computed or kept before it is known to be allowed and bounded."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nmt_core.base.words import count_words
from nmt_core.inference.search.config import DecodingConfig
from nmt_core.serving.client.client import NmtClient
from nmt_core.serving.client.connection import OPTIONS, Access
from nmt_core.serving.errors import RpcError
from nmt_core.serving.limits import Account, ClientLimit, Memory
from nmt_core.serving.methods.plan import score_cost, translation_cost
from nmt_core.serving.models.served import Proportions
from nmt_core.serving.wire import SHAPES, has_more_fields
from nmt_core.v1 import nmt_pb2 as pb
from nmt_core.v1 import nmt_pb2_grpc
from tests.nmt_core.serving.support import eventually, metrics_of, refusal_of, wait_for_quiet

TOKEN = "a-token-of-many-letters"
SCORE = "/nmt_core.v1.NmtService/Score"
EXHAUSTED = grpc.StatusCode.RESOURCE_EXHAUSTED


@pytest.fixture(scope="module")
def token_file(tmp_path_factory) -> str:
    path = tmp_path_factory.mktemp("tokens") / "tokens"
    path.write_text(f"alice {TOKEN}\n")
    return str(path)


@pytest.fixture(scope="module")
def strict(start_here, folder: str, token_file: str):
    """A server with short times, and a token."""
    times = ["--limit", "body=0.5", "--limit", "idle=1.5", "--limit", "unread=1"]
    limits = ["--limit", "client_streams=4", "--metrics-port", "0", "--limit", "memory_mib=16"]
    limits += ["--limit", "steps=20000000"]
    return start_here("--model", f"m={folder}", "--token-file", token_file, *times, *limits)


@pytest.fixture
def channel(strict) -> Iterator[grpc.Channel]:
    """One of each test: the server closes those that are idle."""
    with grpc.insecure_channel(strict.address, options=OPTIONS) as channel:
        yield channel


@pytest.fixture
def stub(channel) -> nmt_pb2_grpc.NmtServiceStub:
    return nmt_pb2_grpc.NmtServiceStub(channel)


METADATA = [("authorization", f"Bearer {TOKEN}")]


def resident(server) -> float:
    """MiB."""
    return int(Path(f"/proc/{server.process.pid}/statm").read_text().split()[1]) * 4096 / (1 << 20)


def test_half_of_a_message_is_not_read_for_strangers(strict, rude) -> None:
    def refused(reason: str) -> float:
        return metrics_of(strict).get(f'nmt_refused_total{{reason="{reason}"}}', 0)

    reasons = ("UNAUTHENTICATED", "SLOW_MESSAGE")
    before = [refused(reason) for reason in reasons]
    client = rude(strict.address)
    streams = [client.call(SCORE) for _ in range(30)]
    assert client.listen_until_ended(streams, 10)
    assert [refused(reason) - one for reason, one in zip(reasons, before, strict=True)] == [30, 0]


def test_half_of_a_message_is_not_waited_for(start, folder: str, token_file: str, rude) -> None:
    server = start(
        "--model", f"m={folder}", "--token-file", token_file, "--limit", "body=0.5", "--limit", "request_mib=32"
    )
    before = resident(server)
    clients = [rude(server.address) for _ in range(12)]
    streams = [client.call(SCORE, [("authorization", f"Bearer {TOKEN}")]) for client in clients]
    threads = [
        threading.Thread(target=client.send_half, args=(stream, 31 << 20, 1.0))
        for client, stream in zip(clients, streams, strict=True)
    ]
    for thread in threads:
        thread.start()
    for client, stream, thread in zip(clients, streams, threads, strict=True):
        thread.join()
        assert client.listen_until_ended([stream], 10)
    assert resident(server) - before < 150  # of 186 MiB that were on their way
    health = rude(server.address)
    stream = health.call("/grpc.health.v1.Health/Check")
    health.send_half(stream, 1000)
    assert health.listen_until_ended([stream], 10)


def test_a_message_that_is_compressed_is_refused(strict) -> None:
    with grpc.insecure_channel(strict.address, compression=grpc.Compression.Gzip) as channel:
        request = pb.TranslateRequest(texts=["un " * 1000])
        code, _ = refusal_of(lambda: nmt_pb2_grpc.NmtServiceStub(channel).Translate(request, metadata=METADATA))
    assert code == grpc.StatusCode.UNIMPLEMENTED


def test_questions_for_health_are_small_and_it_is_not_watched(channel) -> None:
    health = channel.unary_unary("/grpc.health.v1.Health/Check")
    assert refusal_of(lambda: health(bytes(1 << 17)))[0] == grpc.StatusCode.INVALID_ARGUMENT
    watch = channel.unary_stream("/grpc.health.v1.Health/Watch")
    assert refusal_of(lambda: list(watch(b"")))[0] == grpc.StatusCode.UNIMPLEMENTED


def test_a_call_without_a_message_is_refused(channel) -> None:
    call = channel.stream_unary(SCORE)
    rejected = refusal_of(lambda: call(iter([]), metadata=METADATA))
    assert rejected == (grpc.StatusCode.INVALID_ARGUMENT, "NOT_A_MESSAGE")
    with pytest.raises(grpc.RpcError, match='"the call ended without a request"'):
        call(iter([]), metadata=METADATA)


def test_one_client_cannot_have_all_the_streams(strict, stub) -> None:
    end = threading.Event()

    def requests() -> Iterator[pb.ScoreStreamRequest]:
        yield pb.ScoreStreamRequest(id="1", request=pb.ScoreRequest(pairs=[pb.Pair(source="un", target="one")]))
        end.wait(30)

    held = [stub.ScoreStream(requests(), metadata=METADATA) for _ in range(4)]
    assert all(next(call).id == "1" for call in held)
    code, reason = refusal_of(lambda: next(stub.ScoreStream(iter([]), metadata=METADATA)))
    assert (code, reason) == (EXHAUSTED, "TOO_MANY_STREAMS")
    for call in held:  # they are not used, and end
        assert refusal_of(lambda: next(call)) == (grpc.StatusCode.UNAVAILABLE, "STREAM_IDLE")  # noqa: B023 (called at once)
        assert call.details() == "the stream was not used for 1.5 s"
    end.set()


def test_answers_that_nobody_reads_are_given_up(strict, stub) -> None:
    pairs = [pb.Pair(source="un " * 150, target="one " * 150)] * 3
    request = pb.ScoreStreamRequest(request=pb.ScoreRequest(pairs=pairs, with_attention=True))
    call = stub.ScoreStream(iter([request] * 20), metadata=METADATA)
    eventually(lambda: metrics_of(strict)["nmt_memory_held_bytes"])
    with NmtClient(strict.address, access=Access(token=TOKEN), timeout=30) as other:
        assert other.translate(["un"])[0].translations
    eventually(lambda: metrics_of(strict).get('nmt_refused_total{reason="ANSWER_UNREAD"}'), 60)
    call.cancel()
    wait_for_quiet(strict)
    assert metrics_of(strict)["nmt_memory_held_bytes"] == 0


def test_a_single_answer_that_nobody_reads_is_held_while_its_client_is_there(strict, stub, rude) -> None:
    """No window is ever opened for the answer, of which 64 KiB leave; the proxy of the deploy files gives it up."""
    pairs = [pb.Pair(source="un " * 150, target="one " * 150)] * 3
    clients = [rude(strict.address) for _ in range(3)]
    for client in clients:
        stream = client.call(SCORE, METADATA)
        client.send(stream, pb.ScoreRequest(pairs=pairs, with_attention=True).SerializeToString())
    eventually(lambda: metrics_of(strict)["nmt_memory_held_bytes"] > 0)
    assert stub.Score(pb.ScoreRequest(pairs=[pb.Pair(source="un", target="one")]), metadata=METADATA).scores
    for client in clients:
        client.close()
    wait_for_quiet(strict)
    assert metrics_of(strict)["nmt_memory_held_bytes"] == 0


def test_a_connection_without_calls_is_given_up(strict, rude) -> None:
    assert 0.5 < rude(strict.address).seconds_until_going_away() < 60  # the age is an hour


@pytest.mark.parametrize(
    ("method", "content", "items"),
    [
        ("Score", b"\x12\x00" * 100_000, 100_000),
        ("Score", b"\x22\x00" * 100_000, 100_000),
        ("Score", b"\x22\x86\x8d\x06" + b"\x12\x00" * 50_051, 50_051),
        ("Translate", b"\x12\x00" * 100_000, 100_000),
        ("Rerank", b"\x22\x86\x8d\x06" + b"\x12\x00" * 50_051, 50_051),
        ("ScoreStream", b"\x12\x86\x8d\x06" + b"\x12\x00" * 50_051, 50_051),
    ],
)
def test_fields_are_counted_before_they_are_parsed(method: str, content: bytes, items: int) -> None:
    assert has_more_fields(content, SHAPES[method], items - 1)
    assert not has_more_fields(content, SHAPES[method], items + 10)


@given(st.binary(max_size=300), st.integers(0, 40))
def test_any_bytes_can_be_counted(content: bytes, most: int) -> None:
    assert has_more_fields(content, SHAPES["ScoreStream"], most) in (True, False)


_TEXTS = st.text(max_size=9) | st.sampled_from([size * "a" for size in (127, 128, 16_383, 16_384)])


@given(st.lists(st.tuples(_TEXTS, st.lists(_TEXTS, max_size=9)), max_size=9))
def test_the_count_is_that_of_the_message(groups: list[tuple[str, list[str]]]) -> None:
    messages = [pb.SourceGroup(source=source, targets=targets) for source, targets in groups]
    request = pb.ScoreRequest(pairs=[pb.Pair(source="a")] * len(groups), groups=messages, per_word=True)
    fields = 1 + 2 * len(groups) + sum((source != "") + len(targets) for source, targets in groups)
    content = request.SerializeToString()
    assert not has_more_fields(content, SHAPES["Score"], fields)
    if len(content) > 2 * (fields - 1):
        assert has_more_fields(content, SHAPES["Score"], fields - 1)


GROUP = pb.SourceGroup(source="un " * 1000, targets=["one " * 1000] * 120)


@pytest.mark.parametrize(
    ("request_", "reason"),
    [
        (pb.TranslateRequest(texts=["un " * 1500], beam=200, nbest=200, with_attention=True), "ANSWER_TOO_LARGE"),
        (pb.TranslateRequest(texts=["un " * 400], beam=200, with_attention=True), "TOO_COSTLY"),
        (pb.TranslateRequest(texts=["un " * 1500] * 40, beam=200), "TOO_COSTLY"),
        (pb.ScoreRequest(groups=[GROUP], with_attention=True), "ANSWER_TOO_LARGE"),
    ],
)
def test_what_costs_too_much_is_refused_before_it_begins(strict, stub, request_: Any, reason: str) -> None:
    method = type(request_).__name__.removesuffix("Request")
    iterations = f'nmt_turn_seconds_count{{device="cpu",kind="{method.lower()}"}}'
    before = metrics_of(strict).get(iterations, 0)
    rejected = refusal_of(lambda: getattr(stub, method)(request_, metadata=METADATA))
    assert rejected == (grpc.StatusCode.INVALID_ARGUMENT, reason)
    assert metrics_of(strict).get(iterations, 0) == before
    eventually(lambda: metrics_of(strict)["nmt_memory_held_bytes"] == 0)  # the answer may be here before


def test_it_is_said_how_many_steps_a_request_needs_and_may_have(stub) -> None:
    """beam · (L + 1) for each sentence, where L is twice its words and 10: docs/serving.md."""
    problem = f"needs up to {200 * (2 * 1500 + 11) * 40:,} steps of hypotheses; at most 20,000,000, send"
    with pytest.raises(grpc.RpcError, match=problem):
        stub.Translate(pb.TranslateRequest(texts=["un " * 1500] * 40, beam=200), metadata=METADATA)


@pytest.mark.parametrize("attention", [False, True])
@pytest.mark.parametrize("nbest", [1, 5])
def test_an_answer_is_never_larger_than_was_expected(strict, attention: bool, nbest: int) -> None:
    texts = ["un", "un deux " * 10, "deux " * 40, ""]
    config = DecodingConfig(beam=5, nbest=nbest)
    bound = translation_cost(
        [(count_words(text), len(text)) for text in texts], config, Proportions(), answered=attention
    )
    with NmtClient(strict.address, access=Access(token=TOKEN)) as client:
        found = client.translate(texts, beam=5, nbest=nbest, with_attention=attention)
        assert 0 < pb.TranslateResponse(sentences=found).ByteSize() <= bound.answer <= bound.memory
        pairs = [(text, "one two three") for text in texts]
        scores = client.score(pairs, per_word=True, with_attention=attention)
    bound = score_cost([(count_words(source), 3) for source, _ in pairs], per_word=True, attention=attention)
    assert 0 < pb.ScoreResponse(scores=scores).ByteSize() <= bound.answer


def test_shares_are_given_back_and_nobody_has_all() -> None:
    shares, again = ClientLimit("calls", 4, 2, "TOO_MANY_CALLS"), "are open already; try again later"
    with shares.one("a"), shares.one("a"):
        with pytest.raises(RpcError, match=f"^2 calls of this client {again}$"), shares.one("a"):
            pass
        with shares.one("b"), shares.one("c"), pytest.raises(RpcError, match=f"^4 calls {again}$"), shares.one("d"):
            pass
    assert shares.open.total == 0
    with shares.one("a"):
        pass


def test_memory_is_accounted_for() -> None:
    mib, limited = 1 << 20, Memory(100 << 20)
    with Account(limited, "a") as whole, Account(limited, "b") as other:
        with pytest.raises(RpcError) as caught:
            whole.charge(100 * mib + 1)
        problem = "the request needs about 101 MiB of memory; at most 100, send several requests or ask for less"
        assert str(caught.value) == problem
        whole.charge(100 * mib)
        with pytest.raises(RpcError) as caught:
            other.charge(mib + 1)
        problem = "requests hold 100 MiB of memory, and this one needs about 2 more; at most 100, try again later"
        assert str(caught.value) == problem
    memory = Memory(100)
    with Account(memory, "a") as first:
        first.charge(10)
        first.charge(80)  # alone a request may have nearly all
        with Account(memory, "b") as other, pytest.raises(RpcError, match="try again later"):
            other.charge(20)
        with Account(memory, "b") as other:
            other.charge(10)
        with pytest.raises(RpcError) as caught:
            first.charge(11)
        assert caught.value.reason == "TOO_COSTLY"
    assert memory.held.total == 0
    with Account(memory, "a") as first, Account(memory, "a") as second:
        first.charge(40)
        with pytest.raises(RpcError) as caught:
            second.charge(20)  # more than half of all for one client's requests together
        assert caught.value.reason == "MEMORY_FULL"
        with Account(memory, "b") as other:
            other.charge(20)
    assert memory.held.total == 0
