"""What the server tells of itself: metrics, access log, traces."""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
import time

import grpc
import pytest

from nmt_core.serving.client.client import NmtClient
from nmt_core.v1 import nmt_pb2 as pb
from nmt_core.v1 import nmt_pb2_grpc
from tests.nmt_core.serving.test_streams import metrics_of

TRACE = "0af7651916cd43dd8448eb211c80319c"


def settled(log_file) -> int:
    """How many lines there are when no more come: they are written beside the calls."""
    count = -1
    while not log_file.exists() or count != (count := log_file.read_text().count("\n")):
        time.sleep(0.3)
    return count


def lines_after(log_file, count: int, wanted: int) -> list[dict]:
    for _ in range(200):
        lines = log_file.read_text().split("\n")[:-1]
        if len(lines) >= count + wanted:
            return [json.loads(line) for line in lines[count:]]
        time.sleep(0.01)
    raise AssertionError(lines[count:])


def test_a_call_is_logged_without_its_texts(server, log_file) -> None:
    client = NmtClient(server.address)
    client.translate(["un"])
    before = settled(log_file)
    with grpc.insecure_channel(server.address) as channel:
        stub = nmt_pb2_grpc.NmtServiceStub(channel)
        request = pb.TranslateRequest(texts=["un secret", "deux"])
        stub.Translate(request, metadata=[("x-request-id", "job 7")])
        with pytest.raises(grpc.RpcError):
            stub.Translate(pb.TranslateRequest(model="nosuch", texts=["secret"]))
        messages = [pb.TranslateStreamRequest(id=str(number), request=request) for number in range(3)]
        list(stub.TranslateStream(iter(messages)))
    good, bad, stream = lines_after(log_file, before, 3)
    assert (good["method"], good["code"], good["model"], good["items"]) == ("Translate", "OK", "m", 2)
    assert good["request_id"] == "job 7"
    assert good["seconds"] > 0
    assert (bad["code"], bad["reason"]) == ("NOT_FOUND", "UNKNOWN_MODEL")
    assert (stream["method"], stream["requests"], stream["items"]) == ("TranslateStream", 3, 6)
    assert "secret" not in log_file.read_text()


def test_a_message_that_the_library_refuses_is_none_that_could_not_be_read(server, log_file) -> None:
    before = settled(log_file)
    with grpc.insecure_channel(server.address) as channel, pytest.raises(grpc.RpcError) as caught:
        channel.unary_unary("/nmt_core.v1.NmtService/Score")(bytes(5 << 20))
    assert caught.value.code() == grpc.StatusCode.RESOURCE_EXHAUSTED
    (line,) = lines_after(log_file, before, 1)
    assert (line["code"], line.get("reason")) == ("CANCELLED", None)


def test_cancelled_calls_and_passed_deadlines_are_told_apart(server, log_file) -> None:
    before = settled(log_file)
    request = pb.TranslateRequest(texts=["un " * 11] * 3000, beam=10)  # seconds of work
    with grpc.insecure_channel(server.address) as channel:
        stub = nmt_pb2_grpc.NmtServiceStub(channel)
        with pytest.raises(grpc.RpcError):
            stub.Translate(request, timeout=0.4)
        call = stub.Translate.future(request)
        time.sleep(0.4)
        call.cancel()
        codes = {line["code"] for line in lines_after(log_file, before, 2)}
    assert codes == {"DEADLINE_EXCEEDED", "CANCELLED"}


def test_metrics_count_what_was_done(server) -> None:
    client = NmtClient(server.address)
    before = metrics_of(server)
    client.translate(["un deux", "un"])
    client.score([("un", "one two")])
    after: dict[str, float] = {}

    def grown(name: str) -> float:
        return after.get(name, 0) - before.get(name, 0)

    for _ in range(200):  # a batch is counted when its answers are on their way
        after = metrics_of(server)
        if (
            grown('nmt_batch_fill_count{device="cpu",kind="score"}')
            and grown('nmt_queue_seconds_count{device="cpu"}') == 2
        ):
            break
        time.sleep(0.01)

    method = 'grpc_service="nmt_core.v1.NmtService"'
    translated = f'{{grpc_code="OK",grpc_method="Translate",{method}}}'
    assert grown(f"grpc_server_handled_total{translated}") == 1
    assert grown(f'grpc_server_started_total{{grpc_method="Score",{method}}}') == 1
    assert grown(f'grpc_server_handling_seconds_count{{grpc_method="Score",{method}}}') == 1
    assert grown('nmt_words_total{kind="read",model="m"}') == 3
    assert grown('nmt_words_total{kind="scored",model="m"}') == 2
    assert grown('nmt_queue_seconds_count{device="cpu"}') == 2
    assert grown('nmt_batch_fill_count{device="cpu",kind="score"}') == 1
    assert after['nmt_model_load_seconds{device="cpu"}'] > 0
    for name in ("nmt_cancelled_items_total", "nmt_expired_requests_total"):
        assert any(key.startswith(name) for key in after), after


def test_refusals_of_calls_requests_and_items_are_counted_by_reason(server) -> None:
    before = metrics_of(server)
    with grpc.insecure_channel(server.address) as channel:
        stub = nmt_pb2_grpc.NmtServiceStub(channel)
        wrong = pb.TranslateRequest(texts=["un"], beam=99)
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
    program = shutil.which("opentelemetry-instrument") or pytest.skip("opentelemetry-instrument is not on the PATH")
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
