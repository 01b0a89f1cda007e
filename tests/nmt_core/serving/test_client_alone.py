"""The client needs gRPC and Protocol Buffers, and nothing else that hybridmt depends on."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from nmt_core.serving.client.client import NmtClient
from tests.nmt_core.serving.conftest import AnyServer
from tests.without import BASE, NEURAL, program, run_without

ALONE = (*BASE, *NEURAL, "cryptography", "prometheus_client")
_CLASS = """
from nmt_core import NmtClient
with NmtClient(sys.argv[1]) as client:
    print(client.score([("a b", "b a")])[0].log_prob)
"""


@pytest.mark.parametrize("compressed", [False, True], ids=["plain", "gzip"])
def test_the_command_translates(server: AnyServer, tmp_path: Path, compressed: bool) -> None:
    source = tmp_path / "source"
    source.write_bytes(gzip.compress(b"a b\nb c\n") if compressed else b"a b\nb c\n")
    found = run_without(ALONE, program("nmt_core"), "client", "translate", "--address", server.address, str(source))
    with NmtClient(server.address) as client:
        expected = [answer.translations[0].text for answer in client.translate(["a b", "b c"])]
    assert found.stdout.splitlines() == expected, found.stderr


def test_the_class_scores_and_the_command_asks_for_health(server: AnyServer) -> None:
    found = run_without(ALONE, _CLASS, server.address)
    with NmtClient(server.address) as client:
        assert float(found.stdout) == client.score([("a b", "b a")])[0].log_prob, found.stderr
    found = run_without(ALONE, program("nmt_core"), "client", "health", "--address", server.address)
    assert found.returncode == 0, found.stderr


def test_zstd_is_asked_for(server: AnyServer, tmp_path: Path) -> None:
    (tmp_path / "source.zst").write_bytes(b"\x28\xb5\x2f\xfd and more")
    arguments = ["client", "translate", "--address", server.address, str(tmp_path / "source.zst")]
    found = run_without(ALONE, program("nmt_core"), *arguments)
    assert found.returncode == 2
    assert "pip install hybridmt" in found.stderr
    assert len(found.stderr.splitlines()) == 1
