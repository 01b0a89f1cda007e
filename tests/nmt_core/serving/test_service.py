"""A real server and a real client on this machine: the numbers, the errors, and the end."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc

from nmt_core.commands.main import main
from nmt_core.commands.serve import open_served_model
from nmt_core.errors import ServiceError, Unavailable
from nmt_core.inference.beam_search import DecodingConfig
from nmt_core.inference.pair_scorer import open_pair_scorer
from nmt_core.inference.translator import open_translator
from nmt_core.interfaces import PairScore, SentencePair
from nmt_core.serving.client import Connection, RemotePairScorer
from nmt_core.serving.server import Limits, NmtServer, NmtServicer, ServedModel
from nmt_core.v1 import nmt_pb2 as pb
from nmt_core.v1 import nmt_pb2_grpc

INFINITY = float("inf")
PAIRS = [SentencePair("un deux", "one two"), SentencePair("deux", ""), SentencePair("zéro un", "one né one")]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> str:
    place = tmp_path_factory.mktemp("model")
    (place / "s").write_text("</s>\n<unk>\nun\ndeux\n")
    (place / "t").write_text("</s>\n<unk>\none\ntwo\n")
    sizes = ["hidden=8", "embedding=4", "maxout=4", "alignment=4", "initialisation=glorot"]
    overrides = [argument for size in sizes for argument in ("--set", f"model.{size}")]
    vocabularies = ["--source-vocab", str(place / "s"), "--target-vocab", str(place / "t")]
    assert main(["init", str(place / "m"), "--preset", "rnnsearch", *vocabularies, *overrides]) == 0
    return str(place / "m")


class Running:
    """A server in a thread of its own."""

    def __init__(self, folder: str, *names: str, **limits: int) -> None:
        self.folder, self.names, self.limits = folder, names, limits
        self.ready = threading.Event()
        self.thread = threading.Thread(target=lambda: asyncio.run(self._serve()))
        self.thread.start()
        assert self.ready.wait(30)

    async def _serve(self) -> None:
        server = NmtServer(NmtServicer(limits=Limits(**self.limits)), host="127.0.0.1", port=0)
        await server.start()
        await server.load(self._load)
        self.address = f"127.0.0.1:{server.port}"
        self.loop, self.stopping = asyncio.get_running_loop(), asyncio.Event()
        self.ready.set()
        await self.stopping.wait()
        await server.stop(1.0)

    def _load(self) -> dict[str, ServedModel]:
        served = open_served_model([self.folder], DecodingConfig(beam=4), device="cpu", dtype="float32")
        return dict.fromkeys(self.names, served)

    def stop(self) -> None:
        self.loop.call_soon_threadsafe(self.stopping.set)
        self.thread.join(30)


@pytest.fixture(scope="module")
def server(folder: str) -> Iterator[Running]:
    running = Running(folder, "m", items=6000, characters=60, beam=10)
    yield running
    running.stop()


def test_scores_are_those_of_the_model_in_process(server: Running, folder: str) -> None:
    remote = RemotePairScorer(server.address)
    local = open_pair_scorer([folder])
    assert remote.signature == local.signature
    for found, expected in zip(remote.score(PAIRS, per_word=True), local.score(PAIRS, per_word=True), strict=True):
        assert found.log_prob == pytest.approx(expected.log_prob, abs=1e-5)
        assert found.word_log_probs == pytest.approx(expected.word_log_probs, abs=1e-5)
        assert (found.unknown_source, found.unknown_target) == (expected.unknown_source, expected.unknown_target)
    assert [(score.unknown_source, score.unknown_target) for score in remote.score(PAIRS)] == [(0, 0), (0, 0), (1, 1)]
    assert remote.score(PAIRS)[0].word_log_probs is None
    assert remote.score([]) == []


def test_many_pairs_come_back_in_order(server: Running, folder: str) -> None:
    pairs = [SentencePair("un " * (1 + i % 3) + "deux", "two " * (i % 5) + "one") for i in range(7000)]
    found = RemotePairScorer(server.address, model="m").score(pairs)
    expected = open_pair_scorer([folder]).score(pairs)
    assert [score.log_prob for score in found] == pytest.approx([score.log_prob for score in expected], abs=1e-5)


def test_translations_are_those_of_the_model_in_process(server: Running, folder: str) -> None:
    request = pb.TranslateRequest(
        texts=["un deux", "", "deux deux un"], nbest=3, with_attention=True, forbid_unknown=True
    )
    response = Connection(server.address).call("Translate", request)
    config = DecodingConfig(beam=4, nbest=3, forbid_unknown=True)
    expected = open_translator([folder], config=config, attention=True).translate(list(request.texts))
    for sentence, nbest in zip(response.sentences, expected, strict=True):
        assert [found.text for found in sentence.translations] == [found.text for found in nbest]
        for found, goal in zip(sentence.translations, nbest, strict=True):
            assert found.log_prob == pytest.approx(goal.log_prob, abs=1e-5)
            assert sum(found.word_log_probs) == pytest.approx(found.log_prob, abs=1e-6)
            if goal.attention is not None:
                assert len(found.attention) == (len(found.words) + 1) * (len(found.source_words) + 1)
                assert len(found.alignment) == len(found.words)


def status(call) -> grpc.StatusCode:
    with pytest.raises(grpc.RpcError) as caught:
        call()
    return caught.value.code()


@pytest.mark.parametrize(
    ("method", "pb_request", "code"),
    [
        ("Score", pb.ScoreRequest(model="x"), grpc.StatusCode.NOT_FOUND),
        ("GetModel", pb.GetModelRequest(name="x"), grpc.StatusCode.NOT_FOUND),
        ("Translate", pb.TranslateRequest(texts=["a"], beam=11), grpc.StatusCode.INVALID_ARGUMENT),
        ("Translate", pb.TranslateRequest(texts=["a"], beam=0), grpc.StatusCode.INVALID_ARGUMENT),
        ("Translate", pb.TranslateRequest(texts=["a"], beam=2, nbest=3), grpc.StatusCode.INVALID_ARGUMENT),
        ("Translate", pb.TranslateRequest(texts=["a" * 61]), grpc.StatusCode.INVALID_ARGUMENT),
        ("Translate", pb.TranslateRequest(texts=["a"] * 6001), grpc.StatusCode.INVALID_ARGUMENT),
        ("Translate", pb.TranslateRequest(texts=["a"] * 700, nbest=9), grpc.StatusCode.INVALID_ARGUMENT),
        ("Translate", pb.TranslateRequest(texts=["a"], length_normalization=-1), grpc.StatusCode.INVALID_ARGUMENT),
        (
            "Translate",
            pb.TranslateRequest(texts=["a"], length_normalization=INFINITY),
            grpc.StatusCode.INVALID_ARGUMENT,
        ),
        ("Translate", pb.TranslateRequest(texts=["a"], max_length_ratio=INFINITY), grpc.StatusCode.INVALID_ARGUMENT),
        ("Translate", pb.TranslateRequest(model="x", texts=["a"]), grpc.StatusCode.NOT_FOUND),
        ("Score", pb.ScoreRequest(pairs=[pb.Pair(source="a", target="a" * 61)]), grpc.StatusCode.INVALID_ARGUMENT),
    ],
)
def test_bad_requests_get_the_right_status_and_the_server_lives(server: Running, method, pb_request, code) -> None:
    stub = Connection(server.address).stub
    assert status(lambda: getattr(stub, method)(pb_request)) == code
    assert RemotePairScorer(server.address).score(PAIRS)


def test_health_and_reflection_answer(server: Running) -> None:
    with grpc.insecure_channel(server.address) as channel:
        health = health_pb2_grpc.HealthStub(channel)
        for service in ("", "nmt_core.v1.NmtService"):
            answer = health.Check(health_pb2.HealthCheckRequest(service=service))
            assert answer.status == health_pb2.HealthCheckResponse.SERVING
        reflection = reflection_pb2_grpc.ServerReflectionStub(channel)
        request = reflection_pb2.ServerReflectionRequest(list_services="")
        (answer,) = reflection.ServerReflectionInfo(iter([request]))
        assert "nmt_core.v1.NmtService" in [service.name for service in answer.list_services_response.service]


def test_a_server_of_two_models_wants_a_name(folder: str) -> None:
    running = Running(folder, "a", "b")
    try:
        with pytest.raises(ServiceError, match="names no model; models here: a, b"):
            RemotePairScorer(running.address)
        assert RemotePairScorer(running.address, model="b").model == "b"
        models = Connection(running.address).call("ListModels", pb.ListModelsRequest()).models
        assert [(model.name, model.target_words) for model in models] == [("a", 4), ("b", 4)]
    finally:
        running.stop()


def test_a_name_that_is_not_there_is_answered_with_those_that_are(server: Running) -> None:
    with pytest.raises(ServiceError, match=r"there is no model 'x'; models here: m \(NOT_FOUND\)"):
        RemotePairScorer(server.address, model="x")


def test_raw_text_is_detokenised_and_any_script_arrives(server: Running, folder: str) -> None:
    texts = ["Un, deux.", "ünïcödé 日本語 🙂", "e\u0301\u2028 x", "<s> &amp; |||"]
    response = Connection(server.address).call("Translate", pb.TranslateRequest(texts=texts, raw=True))
    expected = open_translator([folder], config=DecodingConfig(beam=4)).translate(texts, raw=True)
    assert [found.translations[0].text for found in response.sentences] == [found[0].text for found in expected]
    assert [tuple(found.translations[0].source_words) for found in response.sentences] == [
        found[0].source_words for found in expected
    ]


def test_bytes_that_are_not_utf8_are_unknown_words(server: Running) -> None:
    (found,) = RemotePairScorer(server.address).score([SentencePair("un \udcff", "one")])
    assert (found.unknown_source, found.unknown_target) == (1, 0)


def test_nobody_there_is_one_clear_error() -> None:
    connection = Connection("127.0.0.1:1", first_wait=0.01)
    with pytest.raises(Unavailable, match=r"nothing answers at 127.0.0.1:1 .*is 'nmt-core serve' running there"):
        connection.call("ListModels", pb.ListModelsRequest())


def test_a_port_in_use_is_one_clear_line(server: Running, tmp_path: Path) -> None:
    port = server.address.rpartition(":")[2]
    with start_serving("--model", f"m={tmp_path}", "--port", port) as process:
        _, error = process.communicate(timeout=30)
    assert process.returncode == 2
    assert error.startswith(f"nmt-core serve: cannot listen on 127.0.0.1:{port}; is another server running there?")
    assert error.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["--model", "m"], "--model m: expected NAME=DIR"),
        (["--model", "m=a,,b"], "expected NAME=DIR"),
        (["--model", "m=a", "--model", "m=b"], "there is a model m already"),
        (["--model", "m=a", "--port", "70000"], "--port 70000: expected 0 to 65535"),
        (["--model", "m=a", "--beam", "0"], "--beam"),
        (["--model", "m=nowhere/at/all", "--port", "0"], "there is no such model folder"),
    ],
)
def test_wrong_options_are_one_clear_line(
    arguments: list[str], problem: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["serve", *arguments]) == 2
    error = capsys.readouterr().err
    assert problem in error
    assert error.count("\n") == 1


def start_serving(*arguments: str) -> subprocess.Popen[str]:
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])}
    command = [sys.executable, "-m", "nmt_core", "serve", "--device", "cpu", *arguments]
    return subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment)


def test_sigterm_ends_the_server_cleanly(folder: str) -> None:
    with start_serving("--model", f"m={folder}", "--port", "0") as process:
        assert process.stderr is not None
        ready = next(line for line in process.stderr if "ready" in line)
        assert RemotePairScorer(ready.split()[-1]).score(PAIRS)
        process.send_signal(signal.SIGTERM)
        assert process.wait(20) == 0


class Gate:
    """A scorer that answers when it is allowed to, and fails when it is told to."""

    signature = "fake:gate"

    def __init__(self) -> None:
        self.open, self.entered = threading.Event(), threading.Event()
        self.calls: list[int] = []

    def score(self, pairs, *, per_word: bool = False, attention: bool = False) -> list[PairScore]:
        self.calls.append(len(pairs))
        self.entered.set()
        assert self.open.wait(20)
        if any(pair.source == "fail" for pair in pairs):
            raise RuntimeError("secret details")
        return [PairScore(-float(len(pair.target))) for pair in pairs]


def gated(gate: Gate) -> dict[str, ServedModel]:
    return {"gate": ServedModel(gate, translate=lambda texts, options: [], defaults=DecodingConfig())}


def health_of(address: str) -> int:
    with grpc.insecure_channel(address) as channel:
        return health_pb2_grpc.HealthStub(channel).Check(health_pb2.HealthCheckRequest()).status


async def code_of(call) -> grpc.StatusCode:
    return await call.code()


def test_loading_and_draining_are_seen_from_outside() -> None:
    gate = Gate()

    async def scenario() -> None:
        server = NmtServer(NmtServicer(), host="127.0.0.1", port=0)
        await server.start()
        async with grpc.aio.insecure_channel(f"127.0.0.1:{server.port}") as channel:
            stub = nmt_pb2_grpc.NmtServiceStub(channel)
            health = health_pb2_grpc.HealthStub(channel)
            watch = health.Watch(health_pb2.HealthCheckRequest(service="nmt_core.v1.NmtService"))
            loading = asyncio.create_task(server.load(lambda: gated(gate)))
            assert (await watch.read()).status == health_pb2.HealthCheckResponse.NOT_SERVING
            assert await code_of(stub.ListModels(pb.ListModelsRequest())) == grpc.StatusCode.UNAVAILABLE
            gate.open.set()
            await loading
            assert (await watch.read()).status == health_pb2.HealthCheckResponse.SERVING
            gate.open.clear()
            gate.entered.clear()
            accepted = stub.Score(pb.ScoreRequest(pairs=[pb.Pair(source="a", target="abc")]))
            assert await asyncio.to_thread(gate.entered.wait, 10)
            stopping = asyncio.create_task(server.stop(20.0))
            assert (await watch.read()).status == health_pb2.HealthCheckResponse.NOT_SERVING
            await asyncio.sleep(0.1)
            assert await code_of(stub.Score(pb.ScoreRequest())) == grpc.StatusCode.UNAVAILABLE
            watch.cancel()
            gate.open.set()
            assert [score.log_prob for score in (await accepted).scores] == [-3.0]
            await stopping

    asyncio.run(scenario())


def test_a_failing_batch_and_a_cancelled_call_leave_the_others_alone() -> None:
    gate = Gate()

    def ask(stub, source: str):
        return stub.Score(pb.ScoreRequest(pairs=[pb.Pair(source=source, target="ab")], per_word=source == "fail"))

    async def scenario() -> None:
        gate.open.set()
        server = NmtServer(NmtServicer(capacity=30), host="127.0.0.1", port=0)
        await server.start()
        await server.load(lambda: gated(gate))
        gate.open.clear()
        gate.entered.clear()
        async with grpc.aio.insecure_channel(f"127.0.0.1:{server.port}") as channel:
            stub = nmt_pb2_grpc.NmtServiceStub(channel)
            first = ask(stub, "a")
            assert await asyncio.to_thread(gate.entered.wait, 10)
            waiting = [ask(stub, source) for source in ("b", "c", "fail", "d")]
            await until(lambda: server.servicer.batcher.waiting_tokens == 16)
            waiting[1].cancel()
            await until(lambda: server.servicer.batcher.waiting_tokens == 12)
            large = stub.Score(pb.ScoreRequest(pairs=[pb.Pair()] * 5))
            assert await code_of(large) == grpc.StatusCode.RESOURCE_EXHAUSTED
            gate.open.set()
            assert [score.log_prob for call in (first, waiting[0], waiting[3]) for score in (await call).scores] == [
                -2
            ] * 3
            assert await code_of(waiting[2]) == grpc.StatusCode.INTERNAL
            assert "secret" not in await waiting[2].details()
        await server.stop()

    asyncio.run(scenario())
    assert gate.calls == [1, 1, 2, 1]  # warm-up, "a", "b" with "d", "fail"


async def until(condition) -> None:
    for _ in range(500):
        if condition():
            return
        await asyncio.sleep(0.01)
    raise AssertionError("it did not happen within 5 s")
