"""The proxy in front of the server: its settings, and with Envoy itself gRPC, HTTP with JSON, and what it answers."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
import socket
import ssl
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import grpc
import pytest
import yaml
from grpc_health.v1 import health_pb2, health_pb2_grpc

from nmt_core.base.errors import ServiceError
from nmt_core.serving.client.aio import AsyncNmtClient
from nmt_core.serving.client.client import NmtClient
from nmt_core.serving.client.connection import Access, health_problem
from nmt_core.serving.limits import Limits
from nmt_core.v1 import nmt_pb2 as pb
from nmt_core.v1 import nmt_pb2_grpc
from tests.nmt_core.serving.conftest import ROOT, AnyServer
from tests.nmt_core.serving.support import eventually, metrics_of, refusal_of
from tests.nmt_core.serving.test_deploy import DEPLOY
from tests.nmt_core.serving.test_security import Authority

TOKEN = "0123456789abcdef-secret"
PROTO = DEPLOY.parents[1] / "proto"
OPENAPI = yaml.safe_load((PROTO / "openapi.yaml").read_text())
ENVOY = shutil.which("envoy", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}") or ""
needs_envoy = pytest.mark.skipif(not ENVOY, reason="needs Envoy: make test-envoy installs it")


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


def test_the_settings_have_the_tokens_and_limits_of_the_server(tmp_path: Path) -> None:
    (tmp_path / "tokens").write_text(f"alice {TOKEN}\n")
    limits = ["request_mib=3", "message_mib=40", "calls=70", "client_calls=70", "streams=7", "age=1000000"]
    options = ["--token-file", str(tmp_path / "tokens"), "--server", "a:1,[::1]:2"]
    text = made(*options, *(word for limit in limits for word in ("--limit", limit)))
    settings = yaml.safe_load(text)
    filters = {one["name"].rpartition(".")[2]: one["typed_config"] for one in http_settings(settings)["http_filters"]}
    assert filters["api_key_auth"]["credentials"] == [{"key": TOKEN, "client": "alice"}]
    assert filters["grpc_json_transcoder"]["max_response_body_size"] == 4 << 20  # whatever the server would send
    assert f"max_request_bytes: {(3 << 20) + 5}\n" in text
    assert http_settings(settings)["common_http_protocol_options"]["max_connection_duration"] == "1000000s"
    (cluster,) = settings["static_resources"]["clusters"]
    assert "address: ::1\n" in text
    (thresholds,) = cluster["circuit_breakers"]["thresholds"]
    assert set(thresholds.values()) == {154}  # of both servers


def test_a_wrong_address_is_one_clear_line() -> None:
    command = [sys.executable, "-m", "scripts.deploy.envoy", "--server", "nmt-1"]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stderr.count("\n")) == (2, 1)
    assert ended.stderr.startswith("envoy.py: 'nmt-1' is not an address; expected HOST:PORT")


def made(*options: str) -> str:
    """What the program of the deploy files writes."""
    command = [sys.executable, "-m", "scripts.deploy.envoy", *options]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout


class Proxy:
    """Envoy with the settings for a server, as the deploy files make them; ``address`` and its authority ``ca``."""

    def __init__(self, folder: Path, server: str, *options: str, authority: Authority | None = None) -> None:
        authority = authority or Authority(folder)
        certificate, key = authority.issue("proxy")
        self.address, self.ca = f"localhost:{free_port()}", authority.path
        listen = self.address.replace("localhost", "127.0.0.1")
        command = ["--server", server, "--listen", listen, "--tls-cert", certificate, "--tls-key", key, *options]
        self.settings = folder / f"envoy-{listen.rpartition(':')[2]}.yaml"
        self.settings.write_text(made("--descriptor", str(PROTO / "http.binpb"), *command))
        self.begin()

    def begin(self) -> None:
        """Start it, again after its end."""
        command = [ENVOY, "-c", str(self.settings), "--concurrency", "1", "--log-level", "error"]
        self.process = subprocess.Popen([*command, "--disable-hot-restart"], stderr=subprocess.DEVNULL)
        eventually(lambda: not health_problem(self.address, timeout=1, access=Access(ca=self.ca)))

    @property
    def context(self) -> ssl.SSLContext:
        return ssl.create_default_context(cafile=self.ca)

    def change(self, *replacements: tuple[str, str]) -> None:
        """Start it again with other settings."""
        self.stop()
        settings = self.settings.read_text()
        for before, after in replacements:
            assert before in settings
            settings = settings.replace(before, after)
        self.settings.write_text(settings)
        self.begin()

    def stop(self) -> None:
        self.process.terminate()
        self.process.wait(20)


@pytest.fixture(scope="module")
def proxy(server, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Proxy]:
    """Envoy between us and the server."""
    envoy = Proxy(tmp_path_factory.mktemp("proxy"), server.address)
    yield envoy
    envoy.stop()


@needs_envoy
def test_calls_and_streams_go_through_the_example(server, proxy: Proxy) -> None:
    texts = ["un", "un deux", "deux un deux"]
    with NmtClient(server.address) as direct:
        expected = [one.translations[0].text for one in direct.translate(texts)]
    with NmtClient(proxy.address, access=Access(ca=proxy.ca), timeout=30) as client:
        assert [one.translations[0].text for one in client.translate(texts)] == expected
        assert client.score([("un", "one")])[0].log_prob < 0


class Http:
    """Asks in JSON, with the path of an operation in openapi.yaml."""

    def __init__(self, proxy: Proxy) -> None:
        self._address, self._context = proxy.address, proxy.context

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
def test_json_has_the_answers_of_grpc(server, proxy: Proxy) -> None:
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
def test_an_answer_may_be_larger_than_the_buffers_of_a_connection(proxy: Proxy) -> None:
    pairs = [{"source": "un deux", "target": "one two"}] * 6000
    answer = Http(proxy).ask("Score", {"pairs": pairs, "per_word": True})
    assert len(answer["scores"]) == 6000
    assert len(json.dumps(answer)) > 1 << 20


@needs_envoy
def test_an_answer_that_takes_long_to_convert_is_rejected(both, tmp_path: Path) -> None:
    proxy = Proxy(tmp_path, both.address)
    pair = {"source": "un", "target": " ".join(["one"] * 31)}  # 280 bytes of an answer
    try:
        for count, expected in ((10_000, 200), (20_000, 500)):
            asked = json.dumps({"pairs": [pair] * count, "per_word": True}).encode()
            assert Http(proxy).raw("/v1/models/search:score", asked)[0] == expected
    finally:
        proxy.stop()


@needs_envoy
def test_json_has_the_statuses_of_grpc(server, proxy: Proxy) -> None:
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


SCORE, STREAM = "/nmt_core.v1.NmtService/Score", "/nmt_core.v1.NmtService/TranslateStream"
HEALTH = "/grpc.health.v1.Health/Check"
METADATA = [("authorization", f"Bearer {TOKEN}")]
OTHER = "0123456789abcdef-other"


class Guarded(NamedTuple):
    """A server with tokens and short times, and Envoy in front of it."""

    server: AnyServer
    proxy: Proxy

    def answers(self) -> None:
        """Another client is answered."""
        access = Access(ca=self.proxy.ca, token=TOKEN)
        with NmtClient(self.proxy.address, access=access, timeout=20) as client:
            assert client.score([("un", "one")])[0].log_prob < 0


@pytest.fixture(scope="module")
def guarded(start_here, folder: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    place = tmp_path_factory.mktemp("guarded")
    (place / "tokens").write_text(f"alice {TOKEN}\nbob {OTHER}\n")
    (place / "limits.yaml").write_text("body: 2\nunread: 1\nidle: 3\nrequest_mib: 3\nmessage_mib: 4\n")
    common = ["--token-file", str(place / "tokens"), "--limits", str(place / "limits.yaml")]
    server = start_here("--model", f"m={folder}", "--metrics-port", "0", *common)
    proxy = Proxy(place, server.address, *common)
    yield Guarded(server, proxy)
    proxy.stop()


def taken(server: AnyServer) -> dict[str, float]:
    """Calls that the server has begun, by method."""
    return {key: value for key, value in metrics_of(server).items() if key.startswith("grpc_server_started_total")}


@needs_envoy
def test_the_body_of_a_stranger_is_not_kept(guarded: Guarded, rude) -> None:
    before, client = taken(guarded.server), rude(guarded.proxy.address, context=guarded.proxy.context)
    for metadata in ([], [("authorization", "Bearer wrong-wrong-wrong")]):
        stream = client.call(SCORE, metadata)
        client.send_half(stream, 2 << 20)
        assert client.listen_until_ended([stream], 1.5)
    assert taken(guarded.server) == before


@needs_envoy
def test_half_of_a_body_does_not_reach_the_server_and_is_ended_in_time(guarded: Guarded, rude) -> None:
    before, client = taken(guarded.server), rude(guarded.proxy.address, context=guarded.proxy.context)
    streams = [client.call(SCORE, METADATA) for _ in range(8)]
    for stream in streams:
        client.send_half(stream, 2 << 18)
    assert taken(guarded.server) == before
    guarded.answers()
    assert client.listen_until_ended(streams, 10)


@needs_envoy
def test_half_of_a_strangers_question_for_health_delays_no_other(guarded: Guarded, rude) -> None:
    client = rude(guarded.proxy.address, context=guarded.proxy.context)
    for stream in [client.call(HEALTH) for _ in range(8)]:  # more than the server reads at once of one address
        client.send_half(stream, 100)
    for _ in range(3):
        assert not health_problem(guarded.proxy.address, timeout=1, access=Access(ca=guarded.proxy.ca))


@needs_envoy
def test_half_sent_bodies_do_not_fill_the_memory_of_the_proxy(guarded: Guarded, rude, tmp_path) -> None:
    """The calls with the largest bodies end, others go on; the memory is smaller here."""
    (tmp_path / "tokens").write_text(f"alice {TOKEN}\n")
    proxy = Proxy(tmp_path, guarded.server.address, "--token-file", str(tmp_path / "tokens"))
    try:
        proxy.change(("max_heap_size_bytes: 1073741824", f"max_heap_size_bytes: {64 << 20}"))
        client = rude(proxy.address, context=proxy.context)
        streams = [client.call(SCORE, METADATA) for _ in range(100)]
        for stream in streams:
            if client.ended:
                break
            client.send_half(stream, 4 << 20, 0.1)
            Guarded(guarded.server, proxy).answers()
        assert 0 < len(client.ended) < 100
        memory = Path(f"/proc/{proxy.process.pid}/statm").read_text().split()[1]
        assert int(memory) * os.sysconf("SC_PAGE_SIZE") < 256 << 20
    finally:
        proxy.stop()


@needs_envoy
def test_a_body_that_is_larger_than_a_request_may_be_is_refused(guarded: Guarded) -> None:
    before = taken(guarded.server)
    access = Access(ca=guarded.proxy.ca, token=TOKEN)
    with NmtClient(guarded.proxy.address, access=access, timeout=5) as client:
        scores = client.score_pairs([("x" * 20_000, "x")] * 400, characters=1 << 24)
        with pytest.raises(ServiceError):
            next(scores)
    assert taken(guarded.server) == before


@needs_envoy
def test_an_answer_that_is_not_read_is_given_up(guarded: Guarded, rude) -> None:
    client, pair = (
        rude(guarded.proxy.address, context=guarded.proxy.context),
        pb.Pair(source="un deux", target="one two"),
    )
    stream = client.call(SCORE, METADATA)
    content = pb.ScoreRequest(pairs=[pair] * 600, per_word=True).SerializeToString()
    assert len(content) < 16_000
    client.send(stream, content)
    guarded.answers()
    assert client.listen_until_ended([stream], 10)  # whose window is not made larger


@needs_envoy
def test_streams_go_through_and_half_of_a_message_in_one_ends_with_the_servers_time(guarded: Guarded, rude) -> None:
    with grpc.secure_channel(
        guarded.proxy.address, grpc.ssl_channel_credentials(Path(guarded.proxy.ca).read_bytes())
    ) as channel:
        requests = [pb.TranslateStreamRequest(id=str(n), request=pb.TranslateRequest(texts=["un"])) for n in range(3)]
        answers = nmt_pb2_grpc.NmtServiceStub(channel).TranslateStream(iter(requests), metadata=METADATA)
        assert {answer.id for answer in answers} == {"0", "1", "2"}
    client = rude(guarded.proxy.address, context=guarded.proxy.context)
    stream = client.call(STREAM, METADATA)
    client.send_half(stream, 1000)
    assert not client.listen_until_ended([stream], 2.2)  # longer than a body may take
    guarded.answers()
    assert client.listen_until_ended([stream], 10)


@needs_envoy
def test_a_connection_without_a_call_is_closed(guarded: Guarded, rude) -> None:
    client = rude(guarded.proxy.address, context=guarded.proxy.context)
    while client.listen(6):
        pass
    assert client.going_away


@needs_envoy
def test_a_client_that_floods_the_proxy_with_calls_takes_none_of_another(guarded: Guarded, rude, tmp_path) -> None:
    """Nor does one whose token is not known. The buckets are smaller here, and are not filled again."""
    (tmp_path / "tokens").write_text(f"alice {TOKEN}\nbob {OTHER}\n")
    proxy = Proxy(tmp_path, guarded.server.address, "--token-file", str(tmp_path / "tokens"))
    proxy.change(
        ("max_tokens: 500", "max_tokens: 300"),
        ("max_tokens: 400\n", "max_tokens: 300\n"),
        ("fill_interval: 1s", "fill_interval: 3600s"),
    )
    score, stranger = pb.ScoreRequest(pairs=[pb.Pair(source="un", target="one")]), "Bearer wrong-wrong-wrong"
    try:
        with grpc.secure_channel(proxy.address, grpc.ssl_channel_credentials(Path(proxy.ca).read_bytes())) as channel:
            ask = nmt_pb2_grpc.NmtServiceStub(channel).Score
            for metadata in (METADATA, [("authorization", stranger)]):
                for client in [rude(proxy.address, context=proxy.context) for _ in range(2)]:
                    for _ in range(200):
                        client.call(SCORE, metadata)
                answer = ask(score, metadata=[("authorization", f"Bearer {OTHER}")], timeout=20)
                assert answer.scores[0].log_prob < 0
            rejected = refusal_of(lambda: ask(score, metadata=METADATA, timeout=20))
            assert rejected == (grpc.StatusCode.RESOURCE_EXHAUSTED, "")  # of the proxy

            def ask_for_health() -> Any:
                check = health_pb2_grpc.HealthStub(channel).Check
                return check(health_pb2.HealthCheckRequest(), metadata=METADATA, timeout=20)

            for last in range(2, 6):  # strangers may ask for health, each address so often, whatever tokens it shows
                client = rude(proxy.address, source=f"127.0.0.{last}", context=proxy.context)
                for number in range(200):
                    client.call(HEALTH, [("authorization", f"Bearer {number}")])
                if last == 2:
                    assert ask_for_health().status == health_pb2.HealthCheckResponse.SERVING
            assert refusal_of(ask_for_health) == (grpc.StatusCode.RESOURCE_EXHAUSTED, "")  # all have asked too often
    finally:
        proxy.stop()


@needs_envoy
def test_calls_that_are_begun_and_taken_back_end_their_connection(guarded: Guarded, rude) -> None:
    """CVE-2023-44487. None of them reaches the server, and others are answered."""
    before, client = taken(guarded.server), rude(guarded.proxy.address, context=guarded.proxy.context)
    assert client.begin_and_reset(SCORE, METADATA, 1_000_000) < 1_000_000
    assert taken(guarded.server) == before
    guarded.answers()


@needs_envoy
async def test_a_server_that_ends_amid_a_thousand_streams_ends_all_of_them(start, folder: str, tmp_path: Path) -> None:
    options = [word for one in ("streams=1000", "client_streams=1000") for word in ("--limit", one)]
    server = start("--model", f"m={folder}", *options)
    proxy = Proxy(tmp_path, server.address, *options)
    request = pb.TranslateStreamRequest(request=pb.TranslateRequest(texts=["un"]))
    credentials = grpc.ssl_channel_credentials(Path(proxy.ca).read_bytes())
    own = [("grpc.use_local_subchannel_pool", 1)]  # a connection of its own, which has 256 streams at most
    channels = [grpc.aio.secure_channel(proxy.address, credentials, options=own) for _ in range(4)]

    async def opened(number: int) -> Any:
        stream = nmt_pb2_grpc.NmtServiceStub(channels[number % 4]).TranslateStream()
        await stream.write(request)
        assert (await stream.read()).response.sentences
        return stream

    async def code(stream: Any) -> grpc.StatusCode:
        with pytest.raises(grpc.aio.AioRpcError) as error:
            await stream.read()
        return error.value.code()

    try:
        streams = [one for first in range(0, 1000, 100) for one in await asyncio.gather(*map(opened, range(100)))]
        server.terminate()
        ends = set(await asyncio.gather(*map(code, streams)))
        # on a busy machine a connection may end before the last statuses have left, which is an INTERNAL of Envoy
        assert ends <= {grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.INTERNAL}
        assert await asyncio.to_thread(server.wait) == 0
        assert proxy.process.poll() is None
    finally:
        for channel in channels:
            await channel.close()
        proxy.stop()


@needs_envoy
def test_no_call_fails_where_one_of_two_servers_ends(guarded: Guarded, start, folder: str, tmp_path: Path) -> None:
    """Which takes health checks some seconds to notice; this client does not try again."""
    (tmp_path / "tokens").write_text(f"alice {TOKEN}\n")
    tokens = ["--token-file", str(tmp_path / "tokens")]
    second = start("--model", f"m={folder}", "--metrics-port", "0", *tokens)
    proxy = Proxy(tmp_path, guarded.server.address, "--server", second.address, *tokens)
    score = pb.ScoreRequest(pairs=[pb.Pair(source="un", target="one")])
    try:
        with grpc.secure_channel(proxy.address, grpc.ssl_channel_credentials(Path(proxy.ca).read_bytes())) as channel:
            stub = nmt_pb2_grpc.NmtServiceStub(channel)

            def answered() -> bool:
                return len(stub.Score(score, metadata=METADATA, timeout=20).scores) == 1

            eventually(lambda: answered() and sum(taken(second).values()) > 2)
            second.terminate()
            while second.process.poll() is None:
                assert answered()
            assert all(answered() for _ in range(100))
    finally:
        proxy.stop()


@needs_envoy
async def test_a_proxy_that_ends_and_comes_back_loses_no_text_and_leaves_no_stream(guarded: Guarded, tmp_path) -> None:
    """Two proxies share the server, and one is killed while streams go through it."""
    server, authority = guarded.server, Authority(tmp_path)
    (tmp_path / "tokens").write_text(f"alice {TOKEN}\n")
    options = ["--token-file", str(tmp_path / "tokens")]
    proxies = [Proxy(tmp_path, server.address, *options, authority=authority) for _ in range(2)]
    try:
        credentials = grpc.ssl_channel_credentials(Path(authority.path).read_bytes())
        async with grpc.aio.secure_channel(proxies[0].address, credentials) as channel:
            streams = [nmt_pb2_grpc.NmtServiceStub(channel).TranslateStream(metadata=METADATA) for _ in range(5)]
            for stream in streams:
                await stream.write(pb.TranslateStreamRequest(request=pb.TranslateRequest(texts=["un"])))
                assert (await stream.read()).response.sentences
            both, access = ",".join(proxy.address for proxy in proxies), Access(ca=authority.path, token=TOKEN)
            async with AsyncNmtClient(both, access=access, timeout=60, first_wait=0.05) as client:
                answered = []
                async for number, _ in client.translate_stream(["un deux"] * 100, ahead=5):
                    answered.append(number)
                    if len(answered) == 20:
                        proxies[0].process.kill()
                        proxies[0].process.wait()
                    if len(answered) == 60:
                        await asyncio.to_thread(proxies[0].begin)
            assert sorted(answered) == list(range(100))
            for stream in streams:
                with pytest.raises(grpc.aio.AioRpcError, match="UNAVAILABLE"):
                    await stream.read()
        open_ones, held = 'nmt_calls_open{kind="stream"}', "nmt_memory_held_bytes"
        eventually(lambda: metrics_of(server)[open_ones] == metrics_of(server)[held] == 0)
    finally:
        for proxy in proxies:
            proxy.stop()


@needs_envoy
def test_the_deploy_files_serve_through_tls_and_tokens() -> None:
    path = os.pathsep.join([str(Path(sys.executable).parent), str(Path(ENVOY).parent), os.environ["PATH"]])
    environment = {**os.environ, "PATH": path, "PYTHON": sys.executable, "PYTHONPATH": str(ROOT)}
    ended = subprocess.run([DEPLOY / "smoke", "local"], env=environment, capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stdout) == (0, "smoke: server and Envoy serve\n"), ended.stderr
