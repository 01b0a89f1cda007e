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
from nmt_core.errors import Overloaded, ServiceError, Unavailable
from nmt_core.inference.beam_search import DecodingConfig
from nmt_core.inference.pair_scorer import open_pair_scorer
from nmt_core.inference.translator import open_translator
from nmt_core.interfaces import SentencePair
from nmt_core.serving.batcher import Batcher
from nmt_core.serving.client import Connection, RemotePairScorer
from nmt_core.serving.server import Limits, NmtServer, NmtServicer
from nmt_core.v1 import nmt_pb2 as pb

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
        served = open_served_model([self.folder], DecodingConfig(beam=4), device="cpu", dtype="float32")
        servicer = NmtServicer(dict.fromkeys(self.names, served), limits=Limits(**self.limits))
        server = NmtServer(servicer, host="127.0.0.1", port=0)
        await server.start()
        self.address = f"127.0.0.1:{server.port}"
        self.loop, self.stopping = asyncio.get_running_loop(), asyncio.Event()
        self.ready.set()
        await self.stopping.wait()
        await server.stop(1.0)

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
        ("Translate", pb.TranslateRequest(texts=["a"], length_normalization=-1), grpc.StatusCode.INVALID_ARGUMENT),
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


def test_nobody_there_is_one_clear_error() -> None:
    connection = Connection("127.0.0.1:1", first_wait=0.01)
    with pytest.raises(Unavailable, match=r"nothing answers at 127.0.0.1:1 .*is 'nmt-core serve' running there"):
        connection.call("ListModels", pb.ListModelsRequest())


def test_a_port_in_use_is_one_clear_line(server: Running, folder: str, capsys: pytest.CaptureFixture[str]) -> None:
    port = server.address.rpartition(":")[2]
    assert main(["serve", "--model", f"m={folder}", "--port", port]) == 2
    error = capsys.readouterr().err.strip().split("\n")[-1]
    assert f"cannot listen on 127.0.0.1:{port}" in error


def test_sigterm_ends_the_server_cleanly(folder: str) -> None:
    root = Path(__file__).parents[3]
    command = [sys.executable, "-m", "nmt_core", "serve", "--model", f"m={folder}", "--port", "0", "--device", "cpu"]
    environment = {**os.environ, "PYTHONPATH": str(root)}
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment) as process:
        assert process.stderr is not None
        ready = next(line for line in process.stderr if "ready" in line)
        assert RemotePairScorer(ready.split()[-1]).score(PAIRS)
        process.send_signal(signal.SIGTERM)
        assert process.wait(20) == 0


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
