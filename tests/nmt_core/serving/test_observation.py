"""What the server tells of itself: metrics, access log, traces."""

from __future__ import annotations

import os
import re
import shutil
import sys
from pathlib import Path
from typing import Any

import grpc
import pytest

from nmt_core.serving.client.client import NmtClient
from nmt_core.v1 import nmt_pb2 as pb
from nmt_core.v1 import nmt_pb2_grpc
from tests.nmt_core.serving.conftest import AnyServer
from tests.nmt_core.serving.support import eventually, metrics_of, wait_for_quiet

TRACE = "0af7651916cd43dd8448eb211c80319c"


@pytest.fixture
def stub(server) -> Any:
    return server.stub


def named(name: str) -> list[tuple[str, str]]:
    """The metadata of a call that is found in the log by its id."""
    return [("x-request-id", name)]


def logged(server: AnyServer, name: str, count: int) -> list[dict]:
    """The lines of the calls of that id, which are written beside the calls."""

    def lines() -> list[dict]:
        return [line for line in server.calls if line["request_id"] == name]

    eventually(lambda: len(lines()) >= count)
    assert len(lines()) == count
    return lines()


def test_a_call_is_logged_without_its_texts(server, stub) -> None:
    request = pb.TranslateRequest(texts=["un secret", "deux"])
    stub.Translate(request, metadata=named("job 7"))
    with pytest.raises(grpc.RpcError):
        stub.Translate(pb.TranslateRequest(model="nosuch", texts=["secret"]), metadata=named("job 7"))
    messages = [pb.TranslateStreamRequest(id=str(number), request=request) for number in range(3)]
    list(stub.TranslateStream(iter(messages), metadata=named("job 7")))
    good, bad, stream = logged(server, "job 7", 3)
    assert (good["method"], good["code"], good["model"], good["items"]) == ("Translate", "OK", "m", 2)
    assert good["seconds"] > 0
    assert (bad["code"], bad["reason"]) == ("NOT_FOUND", "UNKNOWN_MODEL")
    assert (stream["method"], stream["requests"], stream["items"]) == ("TranslateStream", 3, 6)
    assert not any("secret" in line for line in server.lines)


def test_a_call_without_an_id_of_its_own_gets_one(server, stub) -> None:
    def ids() -> set[str]:
        return {line["request_id"] for line in server.calls if line["method"] == "GetModel"}

    before, wrong = ids(), ("", "x" * 129)
    for given in wrong:
        stub.GetModel(pb.GetModelRequest(), metadata=named(given))
    eventually(lambda: len([one for one in ids() - before if re.fullmatch("[0-9a-f]{32}", one)]) >= 2)
    assert ids().isdisjoint(wrong)


def test_a_message_that_the_library_refuses_is_none_that_could_not_be_read(server) -> None:
    with grpc.insecure_channel(server.address) as channel, pytest.raises(grpc.RpcError) as caught:
        channel.unary_unary("/nmt_core.v1.NmtService/Score")(bytes(5 << 20), metadata=named("large"))
    assert caught.value.code() == grpc.StatusCode.RESOURCE_EXHAUSTED
    (line,) = logged(server, "large", 1)
    assert (line["code"], line.get("reason")) == ("CANCELLED", None)


def test_cancelled_calls_and_passed_deadlines_are_told_apart(server, stub) -> None:
    request = pb.TranslateRequest(texts=["un " * 11] * 3000, beam=10)  # seconds of work
    with pytest.raises(grpc.RpcError):
        stub.Translate(request, timeout=0.4, metadata=named("late"))
    call = stub.Translate.future(request, metadata=named("gone"))
    eventually(lambda: metrics_of(server)['nmt_calls_open{kind="call"}'])
    call.cancel()
    for name, code in (("late", "DEADLINE_EXCEEDED"), ("gone", "CANCELLED")):
        assert logged(server, name, 1)[0]["code"] == code
    wait_for_quiet(server)


def test_metrics_count_what_was_done(server) -> None:
    client, before = NmtClient(server.address), metrics_of(server)
    found = client.translate(["un deux", "un"], nbest=2)
    client.score([("un", "one two")])
    method, device = 'grpc_service="nmt_core.v1.NmtService"', 'device="cpu"'
    expected = {
        f'grpc_server_handled_total{{grpc_code="OK",grpc_method="Translate",{method}}}': 1,
        f'grpc_server_started_total{{grpc_method="Score",{method}}}': 1,
        f'grpc_server_handling_seconds_count{{grpc_method="Score",{method}}}': 1,
        'nmt_words_total{kind="read",model="m"}': 3,
        'nmt_words_total{kind="written",model="m"}': sum(len(one.translations[0].words) for one in found),
        'nmt_words_total{kind="scored",model="m"}': 2,
        f"nmt_queue_seconds_count{{{device}}}": 2,
    }
    batches = f'nmt_batch_fill_count{{{device},kind="score"}}'  # one or more: what takes long is done in slices

    def grown() -> dict[str, float]:
        after = metrics_of(server)
        return {name: after.get(name, 0) - before.get(name, 0) for name in expected}

    eventually(lambda: grown() == expected)
    eventually(
        lambda: metrics_of(server)[batches] > before.get(batches, 0)
    )  # counted when its answers are on their way
    assert metrics_of(server)[f"nmt_model_load_seconds{{{device}}}"] > 0
    for name in ("nmt_cancelled_items_total", "nmt_expired_requests_total"):
        assert any(key.startswith(name) for key in metrics_of(server))


def test_refusals_of_calls_requests_and_items_are_counted_by_reason(server, stub) -> None:
    before, wrong = metrics_of(server), pb.TranslateRequest(texts=["un"], beam=99)
    with pytest.raises(grpc.RpcError):
        stub.Translate(wrong)
    (answer,) = stub.TranslateStream(iter([pb.TranslateStreamRequest(request=wrong)]))
    assert answer.error.reason == "BAD_OPTION"
    stub.Translate(pb.TranslateRequest(texts=["un", "x" * 100, "x" * 100]))
    stub.Score(pb.ScoreRequest(pairs=[pb.Pair(source="x" * 100), pb.Pair(source="un")]))
    after = metrics_of(server)
    for name, wanted in (
        ('nmt_refused_total{reason="BAD_OPTION"}', 2),
        ('nmt_item_errors_total{model="m",reason="TEXT_TOO_LONG"}', 3),
    ):
        assert after[name] - before.get(name, 0) == wanted


def test_unknown_words_that_are_replaced_are_counted(server) -> None:
    name = 'nmt_words_total{kind="copied",model="m"}'
    before = metrics_of(server).get(name, 0)
    (found,) = NmtClient(server.address).translate(["zéro né"], beam=4, nbest=4, replace_unknown=True)
    unknown = sum(list(one.words).count("<unk>") for one in found.translations)
    assert metrics_of(server)[name] - before == unknown > 0


def test_a_call_is_a_span_of_its_callers_trace(start, folder: str) -> None:
    """OpenTelemetry's own program makes the spans."""
    pytest.importorskip("opentelemetry.instrumentation.grpc")
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    program = shutil.which("opentelemetry-instrument", path=path)
    assert program is not None
    exporters = {"OTEL_TRACES_EXPORTER": "console", "OTEL_METRICS_EXPORTER": "none", "OTEL_LOGS_EXPORTER": "none"}
    environment = {**exporters, "PYTHONPATH": os.pathsep.join(map(str, sys.path))}
    server = start("--model", f"m={folder}", prefix=[sys.executable, program], **environment)
    with grpc.insecure_channel(server.address) as channel:
        stub, caller = nmt_pb2_grpc.NmtServiceStub(channel), [("traceparent", f"00-{TRACE}-b7ad6b7169203331-01")]
        request = pb.TranslateRequest(texts=["un secret"])
        stub.Translate(request, metadata=caller)
        requests = iter([pb.TranslateStreamRequest(request=request)])
        assert len(list(stub.TranslateStream(requests, metadata=caller))) == 1
    server.terminate()
    assert server.wait() == 0
    written = "\n".join(server.lines)
    for method in ("Translate", "TranslateStream"):
        assert re.search(rf'"rpc.method": "{method}"', written)
    assert written.count(TRACE) == 2
    assert "secret" not in written
