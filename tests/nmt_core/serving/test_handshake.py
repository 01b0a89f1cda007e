"""Where TLS is what is wrong, the line says so."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator
from concurrent import futures
from pathlib import Path

import grpc
import pytest

from nmt_core.base.errors import Unavailable
from nmt_core.serving import handshake
from nmt_core.serving.client.aio import AsyncNmtClient
from nmt_core.serving.client.client import NmtClient
from nmt_core.serving.client.connection import Access, health_problem
from nmt_core.serving.handshake import tls_problem
from tests.nmt_core.serving.test_security import Authority


@pytest.fixture(autouse=True)
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """The machine may be slow."""
    monkeypatch.setattr(handshake, "_PATIENCE", 60.0)


@contextlib.contextmanager
def listening(credentials: grpc.ServerCredentials | None) -> Iterator[str]:
    """A server without services on 127.0.0.1 alone."""
    server = grpc.server(futures.ThreadPoolExecutor(1))
    if credentials is None:
        port = server.add_insecure_port("127.0.0.1:0")
    else:
        port = server.add_secure_port("127.0.0.1:0", credentials)
    server.start()
    try:
        yield f"localhost:{port}"
    finally:
        server.stop(None).wait()


def credentials(authority: Authority, *, clients: str | None = None) -> grpc.ServerCredentials:
    certificate, key = (Path(path).read_bytes() for path in authority.issue("server"))
    ca = None if clients is None else Path(clients).read_bytes()
    return grpc.ssl_server_credentials([(key, certificate)], ca, clients is not None)


def told(address: str, access: Access) -> str:
    with pytest.raises(Unavailable, match=f"nothing answers at {address}") as caught:
        NmtClient(address, timeout=60, first_wait=0.001, access=access).models()
    return str(caught.value)


def test_a_certificate_that_is_not_trusted_is_named(tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    other = Authority(tmp_path / "other").path
    with listening(credentials(Authority(tmp_path))) as address:
        for access, signed_by in ((Access(ca=other), other), (Access(tls=True), "an authority that this system knows")):
            line = told(address, access)
            assert "the server's TLS certificate is refused: " in line
            assert f"expected one signed by {signed_by}" in line
            assert "\n" not in line and "refused:" not in line.partition("is refused: ")[2]
        found = health_problem(address, timeout=60, access=Access(ca=other))
    assert "the server's TLS certificate is refused: " in found and found.endswith("(UNAVAILABLE)")


def test_the_asynchronous_client_is_told_the_same(tmp_path: Path) -> None:
    async def ask(address: str) -> None:
        async with AsyncNmtClient(address, timeout=60, first_wait=0.001, access=Access(tls=True)) as client:
            await client.models()

    refused = pytest.raises(Unavailable, match="the server's TLS certificate is refused")
    with listening(credentials(Authority(tmp_path))) as address, refused:
        asyncio.run(ask(address))


def test_one_side_without_tls_is_named(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    with listening(credentials(authority)) as address:
        assert "the server wants TLS (--tls)" in told(address, Access())
        assert tls_problem(address, Access(ca=authority.path)) == ""
    with listening(None) as address:
        assert "does the server speak TLS?" in told(address, Access(ca=authority.path))
        assert tls_problem(address, Access()) == ""


def test_a_server_that_wants_our_certificate_is_named(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    with listening(credentials(authority, clients=authority.path)) as address:
        assert "it may want another certificate of ours" in told(address, Access(ca=authority.path))
        assert tls_problem(address, Access(True, authority.path, *authority.issue("alice"))) == ""


def test_where_nobody_listens_tls_is_not_blamed(tmp_path: Path) -> None:
    for access in (Access(), Access(ca=Authority(tmp_path).path)):
        assert "is 'nmt-core serve' running there?" in told("127.0.0.1:1", access)
        assert tls_problem("127.0.0.1:1", access) == ""
