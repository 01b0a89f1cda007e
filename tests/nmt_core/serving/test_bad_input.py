"""What clients do wrong: the right status, a message that says how to mend it, and a server that lives."""

from __future__ import annotations

import random
import socket
import time

import grpc
import pytest
from google.rpc import error_details_pb2, status_pb2
from grpc_health.v1 import health_pb2, health_pb2_grpc

from nmt_core.base.errors import ServiceError
from nmt_core.base.interfaces import SentencePair
from nmt_core.serving.client.client import NmtClient, RemotePairScorer
from nmt_core.serving.errors import DETAILS
from nmt_core.v1 import nmt_pb2 as pb
from nmt_core.v1 import nmt_pb2_grpc

INVALID = grpc.StatusCode.INVALID_ARGUMENT
INFINITY, NAN = float("inf"), float("nan")
METHODS = ["Translate", "Score", "Rerank", "Encode", "ListModels", "GetModel", "TranslateStream", "ScoreStream"]


@pytest.fixture(scope="module")
def channel(server) -> grpc.Channel:
    return server.channel


@pytest.fixture(autouse=True)
def alive(server):
    yield
    assert NmtClient(server.address, timeout=10).score([("un", "one")])[0].log_prob < 0


def refused(call) -> tuple[grpc.RpcError, dict[str, object]]:
    with pytest.raises(grpc.RpcError) as caught:
        call()
    trailers = dict(caught.value.trailing_metadata() or ())
    details: dict[str, object] = {}
    for packed in status_pb2.Status.FromString(trailers.get(DETAILS, b"")).details:
        detail = getattr(error_details_pb2, packed.TypeName().rpartition(".")[2])()
        packed.Unpack(detail)
        details[type(detail).__name__] = detail
    return caught.value, details


VALUES = "lists[0].hypotheses[0].values"


def one_list(value: float | tuple[()] = 1.0, *, weight: float = 1.0) -> dict[str, object]:
    """The fields of a Rerank of one hypothesis with a value, or none."""
    hypothesis = pb.Hypothesis(target="a", values=[] if value == () else [value])
    columns = [pb.FeatureColumn(name="F", weight=weight)]
    return {"columns": columns, "lists": [pb.NbestList(source="a", hypotheses=[hypothesis])]}


CODES = {"UNKNOWN_MODEL": grpc.StatusCode.NOT_FOUND, "NOT_SUPPORTED": grpc.StatusCode.FAILED_PRECONDITION}


@pytest.mark.parametrize(
    ("method", "fields", "reason", "field"),
    [
        ("Score", {"model": "x"}, "UNKNOWN_MODEL", "model"),
        ("GetModel", {"name": "x" * 5000}, "UNKNOWN_MODEL", "model"),
        ("Translate", {"model": "../m"}, "UNKNOWN_MODEL", "model"),
        ("Encode", {"texts": ["a"]}, "NOT_SUPPORTED", None),
        ("Translate", {"texts": ["a"] * 6001}, "TOO_MANY_ITEMS", "texts"),
        ("Translate", {"texts": ["a"] * 700, "nbest": 9}, "TOO_MANY_ITEMS", "texts"),
        ("Score", {"pairs": [pb.Pair()] * 6001}, "TOO_MANY_ITEMS", "pairs"),
        ("Rerank", {"lists": [pb.NbestList()] * 6001}, "TOO_MANY_ITEMS", "lists"),
        ("Rerank", {"lists": [pb.NbestList(hypotheses=[pb.Hypothesis()] * 6001)]}, "TOO_MANY_ITEMS", "lists"),
        ("Score", {"pairs": [pb.Pair()] * 200_000}, "TOO_MANY_ITEMS", None),  # before it is parsed
        *(("Translate", {"beam": beam}, "BAD_OPTION", "beam") for beam in (0, 11, 2**32 - 1)),
        ("Translate", {"beam": 2, "nbest": 3}, "BAD_OPTION", "nbest"),
        ("Translate", {"beam": 10, "nbest": 10}, "BAD_OPTION", "nbest"),
        *(
            ("Translate", {name: value}, "BAD_OPTION", name)
            for name in ("length_normalization", "max_length_ratio")
            for value in (-1, 1e308, INFINITY, NAN)
        ),
        *(("Rerank", one_list(value), "BAD_OPTION", VALUES) for value in ((), 1e31, -1e308, 1e308, INFINITY, NAN)),
        *(("Rerank", one_list(weight=value), "BAD_OPTION", "columns") for value in (1e31, -1e308, INFINITY, NAN)),
        *(("Rerank", one_list() | {"model_weight": value}, "BAD_OPTION", "model_weight") for value in (1e31, NAN)),
    ],
)
def test_a_request_that_makes_no_sense_gets_its_status(channel, method: str, fields, reason, field) -> None:
    texts = {"texts": ["a"]} if method == "Translate" else {}
    request = getattr(pb, f"{method}Request")(**texts | fields)
    error, details = refused(lambda: getattr(nmt_pb2_grpc.NmtServiceStub(channel), method)(request))
    assert error.code() == CODES.get(reason, INVALID)
    assert details["ErrorInfo"].reason == reason
    assert details["ErrorInfo"].domain == "nmt_core"
    assert len(error.details()) < 300
    if field is not None:
        assert details["BadRequest"].field_violations[0].field == field
    if reason == "TOO_MANY_ITEMS" and field is not None:
        asked = "9 translations of each of 700 items" if "nbest" in fields else "6001 items"
        assert error.details() == f"{asked} in one request; at most 6000, send several requests"
    elif reason == "TOO_MANY_ITEMS":
        assert error.details() == "the request has more fields than 6000 items need; send several requests"
    elif reason == "UNKNOWN_MODEL":
        asked = f"there is no model {(fields.get('name') or fields['model'])[:100]!r}"
        assert error.details() == f"{asked}; models here: m"
    elif reason == "NOT_SUPPORTED":
        assert error.details() == "the model 'm' has no single vector of a phrase; an rnnencdec has"


def test_empty_requests_are_answered_with_nothing(channel) -> None:
    stub = nmt_pb2_grpc.NmtServiceStub(channel)
    assert not stub.Translate(pb.TranslateRequest()).sentences
    assert not stub.Score(pb.ScoreRequest()).scores
    assert not stub.Rerank(pb.RerankRequest()).rankings
    assert [len(group.scores) for group in stub.Score(pb.ScoreRequest(groups=[pb.SourceGroup()])).groups] == [0]


def test_one_text_that_is_too_long_leaves_the_others_alone(server) -> None:
    client = NmtClient(server.address)
    texts = ["un", "x" * 1_000_000, "un " * 13, "x" * 60]
    found = client.translate(texts)
    assert [one.error.reason for one in found] == ["", "TEXT_TOO_LONG", "TEXT_TOO_LONG", ""]
    assert found[1].error.message == "the text has 1000000 characters; at most 60"
    assert found[2].error.message == "the text has 13 words; at most 12"
    assert not client.translate(["un " * 12])[0].HasField("error")
    assert [len(one.translations) for one in found] == [1, 0, 0, 1]
    scores = client.score([("un", text) for text in texts])
    assert [score.error.code for score in scores] == [0, 3, 3, 0]
    lists = [pb.NbestList(source="un", hypotheses=[pb.Hypothesis(target=text) for text in texts])]
    (ranking,) = client.rerank(lists, model_weight=1.0)
    assert [one.position for one in ranking.hypotheses][2:] == [1, 2]
    with pytest.raises(ServiceError) as caught:
        RemotePairScorer(server.address).score([SentencePair("x" * 61, "un")])
    problem = "the text has 61 characters; at most 60"
    assert str(caught.value) == f"{server.address}: {problem} (source {'x' * 60!r})"


def test_a_raw_text_is_measured_after_it_was_tokenised(server) -> None:
    (found,) = NmtClient(server.address).translate(["," * 40], raw=True)
    assert found.error.reason == "TEXT_TOO_LONG"


@pytest.mark.parametrize("method", METHODS)
def test_bytes_that_are_no_message_are_an_invalid_argument(channel, method: str) -> None:
    call = channel.stream_stream(f"/nmt_core.v1.NmtService/{method}")
    error, details = refused(lambda: list(call(iter([b"\xff\xff\xff\xff"]))))
    assert error.code() == INVALID
    assert details["ErrorInfo"].reason == "NOT_A_MESSAGE"
    assert error.details() == "the request is not a message of this method, or a text in it is not UTF-8"


def test_text_that_is_not_utf8_is_an_invalid_argument(channel) -> None:
    content = pb.TranslateRequest(texts=["abcd"]).SerializeToString().replace(b"abcd", b"ab\xff\xfe")
    for method, sent in [("Translate", content), ("Score", b"\x12\x06\x0a\x04ab\xff\xfe")]:
        error, _ = refused(lambda: channel.unary_unary(f"/nmt_core.v1.NmtService/{method}")(sent))  # noqa: B023 (called at once)
        assert error.code() == INVALID
        assert "UTF-8" in error.details()


def test_a_message_that_is_too_large_is_refused_and_not_sent_again(server) -> None:
    client = NmtClient(server.address, first_wait=10.0)
    begin = time.monotonic()
    with pytest.raises(ServiceError, match=r"max \(36\d{5} vs. 3145728\); send less .* a larger --limit request_mib="):
        client.translate(["x" * 3_600_000])  # an answer could be as large
    assert time.monotonic() - begin < 60  # ten attempts take longer


def test_a_method_that_is_not_there(channel) -> None:
    error, _ = refused(lambda: channel.unary_unary("/nmt_core.v1.NmtService/Shutdown")(b""))
    assert error.code() == grpc.StatusCode.UNIMPLEMENTED


def test_every_method_of_the_health_service_is_there(server, channel) -> None:
    """One that is not would write a page into the log with each call, of anybody."""
    before = len(server.lines)
    found = health_pb2_grpc.HealthStub(channel).List(health_pb2.HealthListRequest()).statuses
    assert {name: answer.status for name, answer in found.items()} == {"": 1, "nmt_core.v1.NmtService": 1}
    request = health_pb2.HealthCheckRequest(service="o" * 101)
    error, details = refused(lambda: health_pb2_grpc.HealthStub(channel).Check(request))
    assert (error.code(), details["ErrorInfo"].reason) == (grpc.StatusCode.NOT_FOUND, "UNKNOWN_SERVICE")
    assert error.details() == f"there is no service {'o' * 100!r}"
    others = [line for line in server.lines[before:] if '"method": "Score"' not in line]  # of the test before
    assert others == []


def test_what_is_not_http2_is_hung_up_on(server) -> None:
    host, _, port = server.address.rpartition(":")
    for content in (b"GET / HTTP/1.1\r\n\r\n", random.Random(1).randbytes(5000)):
        with socket.create_connection((host, int(port)), timeout=5) as plain:
            plain.sendall(content)
            plain.settimeout(10)
            try:
                while plain.recv(4096):
                    pass
            except ConnectionResetError:
                pass
