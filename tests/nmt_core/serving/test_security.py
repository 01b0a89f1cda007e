"""Certificates, tokens, and the addresses that need them."""

from __future__ import annotations

import argparse
import contextlib
import datetime
import ipaddress
import os
from pathlib import Path
from types import SimpleNamespace

import grpc
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID
from grpc_health.v1 import health_pb2, health_pb2_grpc

from nmt_core.base.errors import ConfigError, InputError, ServiceError, Unavailable
from nmt_core.commands import serve
from nmt_core.commands.main import main
from nmt_core.serving.client.client import NmtClient, RemotePairScorer
from nmt_core.serving.client.connection import Access
from nmt_core.serving.command import read_address
from nmt_core.serving.credentials import (
    Client,
    check_exposure,
    identify,
    owner_of,
    read_tokens,
)
from nmt_core.serving.errors import RpcError
from tests.nmt_core.serving.support import eventually

TOKEN = "0123456789abcdef-secret"


class Authority:
    """Signs certificates for 127.0.0.1 and localhost, and writes PEM files."""

    def __init__(self, folder: Path, name: str = "ca", signer: Authority | None = None) -> None:
        self.folder, self.key = folder, ec.generate_private_key(ec.SECP256R1())
        self.name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        self.path = str(folder / f"{name}.pem")
        certificate = (signer or self)._signed(self.name, self.key, days=(-1, 30), authority=True)
        Path(self.path).write_bytes(certificate.public_bytes(serialization.Encoding.PEM))

    def issue(
        self, name: str, days: tuple[int, int] = (-1, 30), *, use: x509.ObjectIdentifier | None = None
    ) -> tuple[str, str]:
        """The paths of a certificate (for this use only) and its key."""
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        certificate = self._signed(subject, key, days=days, authority=False, use=use)
        paths = self.folder / f"{name}.pem", self.folder / f"{name}.key"
        paths[0].write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
        form = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        paths[1].write_bytes(key.private_bytes(serialization.Encoding.PEM, *form))
        return str(paths[0]), str(paths[1])

    def _signed(self, subject, key, *, days, authority: bool, use=None) -> x509.Certificate:
        now = datetime.datetime.now(datetime.UTC)
        names = [x509.DNSName("localhost"), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]
        builder = (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self.name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now + datetime.timedelta(days=days[0]))
            .not_valid_after(now + datetime.timedelta(days=days[1]))
            .add_extension(x509.BasicConstraints(ca=authority, path_length=None), critical=True)
            .add_extension(x509.SubjectAlternativeName(names), critical=False)
        )
        if use is not None:
            builder = builder.add_extension(x509.ExtendedKeyUsage([use]), critical=False)
        return builder.sign(self.key, hashes.SHA256())


@pytest.fixture(scope="module")
def authority(tmp_path_factory) -> Authority:
    return Authority(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(scope="module")
def guarded(start_here, folder: str, authority: Authority):
    """A server that wants a client's certificate and a token."""
    tokens = authority.folder / "tokens"
    tokens.write_text(f"# people\nalice {TOKEN}\nbob {TOKEN}-2\n")
    certificate, key = authority.issue("server")
    tls = ["--tls-cert", certificate, "--tls-key", key, "--tls-client-ca", authority.path]
    return start_here("--model", f"m={folder}", "--token-file", str(tokens), *tls, "--access-log")


def logged(server) -> set[tuple[str | None, str | None, str]]:
    """User, certificate and status of the calls in the log."""
    return {(line.get("user"), line.get("certificate"), line["code"]) for line in server.calls}


def scored(server, access: Access, timeout: float = 10) -> float:
    client = NmtClient(server.address, timeout=timeout, first_wait=0.01, access=access)
    try:
        return client.score([("un", "one")])[0].log_prob
    finally:
        client.close()


def test_who_has_certificate_and_token_is_served(guarded, authority: Authority, tmp_path, capsysbinary) -> None:
    certificate, key = authority.issue("alice")
    assert scored(guarded, Access(True, authority.path, certificate, key, TOKEN)) < 0
    assert scored(guarded, Access(True, authority.path, certificate, key, f"{TOKEN}-2")) < 0
    (tmp_path / "token").write_text(f"{TOKEN}\n")
    (tmp_path / "source").write_text("un\n")
    tls = ["--tls-ca", authority.path, "--tls-cert", certificate, "--tls-key", key]
    arguments = ["--address", guarded.address, *tls, "--token-file", str(tmp_path / "token")]
    assert main(["client", "translate", *arguments, str(tmp_path / "source")]) == 0
    assert capsysbinary.readouterr().out.count(b"\n") == 1
    scorer = RemotePairScorer(guarded.address, access=Access(True, authority.path, certificate, key, TOKEN))
    assert scorer.signature.startswith("nmt:rnnsearch|")


@pytest.mark.parametrize("token", [None, "", "wrong", TOKEN[:-1], TOKEN + "x", "x" * 5000])
def test_a_wrong_token_is_unauthenticated(guarded, authority: Authority, token: str | None) -> None:
    with pytest.raises(ServiceError, match=r"\(UNAUTHENTICATED\)"):
        scored(guarded, Access(True, authority.path, *authority.issue("alice"), token))


def test_health_needs_no_token(guarded, authority: Authority) -> None:
    credentials = Access(True, authority.path, *authority.issue("alice")).credentials()
    with grpc.secure_channel(guarded.address, credentials) as channel:
        answer = health_pb2_grpc.HealthStub(channel).Check(health_pb2.HealthCheckRequest())
        assert answer.status == health_pb2.HealthCheckResponse.SERVING


@pytest.mark.parametrize("kind", ["plain", "none", "stranger", "expired", "of a server", "other authority"])
def test_who_cannot_prove_who_he_is_never_gets_through(guarded, authority: Authority, tmp_path, kind: str) -> None:
    certificate, key = authority.issue("alice", use=ExtendedKeyUsageOID.CLIENT_AUTH)
    assert scored(guarded, Access(True, authority.path, certificate, key, TOKEN)) < 0
    of_server = authority.issue("other-server", use=ExtendedKeyUsageOID.SERVER_AUTH)
    access = {
        "plain": lambda: Access(token=TOKEN),
        "none": lambda: Access(True, authority.path, token=TOKEN),
        "stranger": lambda: Access(True, authority.path, *Authority(tmp_path).issue("stranger"), token=TOKEN),
        "expired": lambda: Access(True, authority.path, *authority.issue("expired", days=(-9, -2)), token=TOKEN),
        "of a server": lambda: Access(True, authority.path, *of_server, token=TOKEN),
        "other authority": lambda: Access(True, Authority(tmp_path).path, certificate, key, TOKEN),
    }[kind]()
    with pytest.raises(Unavailable):
        scored(guarded, access)


def test_files_that_cannot_be_used_are_one_clear_line(authority: Authority, tmp_path: Path, error_line) -> None:
    certificate, key = authority.issue("one")
    _, other = authority.issue("two")
    broken, locked = tmp_path / "broken.pem", tmp_path / "locked.key"
    broken.write_text("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n")
    form = serialization.PrivateFormat.PKCS8, serialization.BestAvailableEncryption(b"secret")
    secret = serialization.load_pem_private_key(Path(key).read_bytes(), None)
    locked.write_bytes(secret.private_bytes(serialization.Encoding.PEM, *form))
    for files, problem in (
        ([certificate, other, authority.path], f"{other}: is not the private key of {certificate}"),
        ([certificate, key, str(broken)], f"{broken}: expected a PEM file with a CERTIFICATE"),
        ([str(broken), key, authority.path], f"{broken}: expected a PEM file with a CERTIFICATE"),
        (
            [certificate, str(locked), authority.path],
            f"{locked}: is protected by a password; expected a key without one",
        ),
        ([certificate, certificate, authority.path], f"{certificate}: expected a PEM file with a PRIVATE KEY"),
    ):
        named = zip(("--tls-cert", "--tls-key", "--tls-client-ca"), files, strict=True)
        options = [word for pair in named for word in pair]
        error = error_line(main, ["serve", "--model", "m=nowhere", "--device", "cpu", "--port", "0", *options])
        assert error == f"nmt-core serve: {problem}"


PUBLIC, OWN = ("0.0.0.0", "::", "192.168.1.7", "example.org"), ("localhost", "127.0.0.1", "127.8.8.8", "::1")


@pytest.mark.parametrize("host", [*PUBLIC, *OWN])
def test_a_public_address_needs_encryption_or_a_word(host: str) -> None:
    check_exposure(host, encrypted=True, insecure=False)
    check_exposure(host, encrypted=False, insecure=True)
    with pytest.raises(ConfigError, match="--insecure") if host in PUBLIC else contextlib.nullcontext():
        check_exposure(host, encrypted=False, insecure=False)


def test_a_machine_may_have_a_name_that_begins_like_one() -> None:
    parser = argparse.ArgumentParser()
    serve.add_arguments(parser)
    assert read_address(parser.parse_args(["--host", "unixbox", "--insecure"])).host == "unixbox"
    assert read_address(parser.parse_args(["--port", "65535", "--metrics-port", "65535"])).port == 65535
    with pytest.raises(ConfigError, match=r"^--host unixbox can be reached from other machines"):
        read_address(parser.parse_args(["--host", "unixbox"]))


LINE = "expected NAME TOKEN, the token of at least 16 characters, or NAME TOKEN MODEL,MODEL"


def test_owners_of_tokens(tmp_path: Path) -> None:
    (tmp_path / "tokens").write_text(f"alice {'a' * 20}\nbob {'b' * 20} en-fr\n")
    tokens = read_tokens(str(tmp_path / "tokens"))

    def owner(authorization: str) -> Client:
        return owner_of(SimpleNamespace(invocation_metadata=lambda: [("authorization", authorization)]), tokens)

    assert owner("Bearer " + "b" * 20) == Client("token bob", "bob", frozenset(["en-fr"]))
    assert owner("bearer  " + "a" * 20) == Client("token alice", "alice")
    for wrong in ("Bearer", "Bearer ", "Basic " + "a" * 20, "a" * 20, "Bearer " + "a" * 19):
        with pytest.raises(RpcError, match=r"^the token is wrong$"):
            owner(wrong)
    with pytest.raises(RpcError, match=r"^a token is needed: metadata 'authorization: Bearer TOKEN'$"):
        owner("")


@pytest.mark.parametrize(
    ("peer", "names", "client"),
    [
        ("ipv4:10.0.0.1:4711", {}, Client("address ipv4:10.0.0.1")),
        ("ipv6:%5B::1%5D:4711", {}, Client("address ipv6:%5B::1%5D")),
        ("unix:/a:b", {}, Client("address unix:/a:b")),
        ("ipv4:10.0.0.1:4711", {"x509_common_name": [b"eve\xff"]}, Client("certificate eve\ufffd", "eve\ufffd")),
        (
            "ipv4:10.0.0.1:4711",
            {"x509_common_name": [b"eve"], "x509_subject_alternative_name": [b"a", b"b"]},
            Client("certificate a", "a"),
        ),
    ],
)
def test_without_tokens_a_client_is_the_name_of_its_certificate_or_its_address(
    peer: str, names: dict[str, list[bytes]], client: Client
) -> None:
    assert identify(SimpleNamespace(peer=lambda: peer, auth_context=lambda: names), None) == client


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("", ": has no token; a line holds NAME TOKEN"),
        ("alice\n", f":1: {LINE}"),
        (f"# x\na {'x' * 16}\nalice {'y' * 15}\n", f":3: {LINE}"),
        (f"alice {TOKEN} en-fr,\n", f":1: {LINE}"),
        (f"alice {TOKEN} en-fr fr-en\n", f":1: {LINE}"),
        (f"alice {TOKEN}\nbob {TOKEN} en-fr\n", ":2: this token stands in another line already"),
        (f"alice {TOKEN}\u00e9\n", ": tokens are made of ASCII characters"),
    ],
)
def test_token_files_with_mistakes(tmp_path, content: str, problem: str) -> None:
    path = tmp_path / "tokens"
    path.write_text(content)
    with pytest.raises(InputError) as caught:
        read_tokens(str(path))
    assert str(caught.value) == f"{path}{problem}"


def replace(path: Path, content: bytes) -> None:
    new = path.with_suffix(".new")
    new.write_bytes(content)
    os.replace(new, path)


class Rotated:
    """A server whose certificate, which has expired, key and clients' authority are files that are exchanged."""

    def __init__(self, start, folder: str, place: Path) -> None:
        self.certificate, self.key, self.clients = (place / name for name in ("tls.crt", "tls.key", "ca.crt"))
        (place / "one").mkdir()
        (place / "two").mkdir()
        self.one, self.two = Authority(place / "one", "one"), Authority(place / "two", "two")
        self.put(self.one.issue("server", days=(-9, -2)), self.one)
        files = ["--tls-cert", str(self.certificate), "--tls-key", str(self.key), "--tls-client-ca", str(self.clients)]
        self.server = start("--model", f"m={folder}", *files, "--access-log")

    def put(self, pair: tuple[str, str], clients: Authority) -> None:
        replace(self.certificate, Path(pair[0]).read_bytes())
        replace(self.key, Path(pair[1]).read_bytes())
        replace(self.clients, Path(clients.path).read_bytes())

    def access(self, clients: Authority, server: Authority) -> Access:
        return Access(True, server.path, *clients.issue("client"))


@pytest.fixture(scope="module")
def exchanged(start_here, folder: str, tmp_path_factory) -> Rotated:
    return Rotated(start_here, folder, tmp_path_factory.mktemp("rotated"))


@pytest.fixture
def rotated(exchanged: Rotated) -> Rotated:
    """With a certificate for 30 days, which is in use."""
    exchanged.put(exchanged.one.issue("server"), exchanged.one)
    assert scored(exchanged.server, exchanged.access(exchanged.one, exchanged.one)) < 0
    return exchanged


def test_an_expired_certificate_of_the_server_is_refused_until_it_is_renewed(exchanged: Rotated) -> None:
    exchanged.put(exchanged.one.issue("server", days=(-9, -2)), exchanged.one)
    mine = exchanged.access(exchanged.one, exchanged.one)
    with pytest.raises(Unavailable):
        scored(exchanged.server, mine, timeout=2.0)
    exchanged.put(exchanged.one.issue("server"), exchanged.one)
    assert scored(exchanged.server, mine) < 0


def test_the_name_in_a_certificate_stands_in_the_log(rotated: Rotated, guarded, authority: Authority) -> None:
    """Beside the owner of a token, too; it is the first alternative name."""
    eventually(lambda: ("localhost", "localhost", "OK") in logged(rotated.server))
    mine = authority.issue("dave")
    scored(guarded, Access(True, authority.path, *mine, TOKEN))
    with pytest.raises(ServiceError, match="UNAUTHENTICATED"):
        scored(guarded, Access(True, authority.path, *mine, f"{TOKEN}-of-nobody"))
    expected = {("alice", "localhost", "OK"), (None, "localhost", "UNAUTHENTICATED")}
    eventually(lambda: logged(guarded) >= expected)
    assert {certificate for _, certificate, _ in logged(guarded)} == {"localhost"}


def test_files_that_are_as_old_as_those_before_are_followed(rotated: Rotated) -> None:
    """As all of an image or a backup are."""
    places = rotated.certificate, rotated.key
    times = [place.stat().st_mtime_ns for place in places]
    rotated.put(rotated.two.issue("server"), rotated.one)
    for place, time_ in zip(places, times, strict=True):
        os.utime(place, ns=(time_, time_))
    assert scored(rotated.server, rotated.access(rotated.one, rotated.two)) < 0


def test_a_pair_that_does_not_fit_is_told_once_and_not_used(rotated: Rotated) -> None:
    replace(rotated.key, Path(rotated.one.issue("other")[1]).read_bytes())
    for _ in range(3):
        assert scored(rotated.server, rotated.access(rotated.one, rotated.one)) < 0
    problem = f"certificates: {rotated.key}: is not the private key of {rotated.certificate}; new connections use what"
    eventually(lambda: any(f"{problem} there was" in line for line in rotated.server.lines))
    rotated.key.unlink()
    assert scored(rotated.server, rotated.access(rotated.one, rotated.one)) < 0
    rotated.put(rotated.two.issue("server"), rotated.one)
    assert scored(rotated.server, rotated.access(rotated.one, rotated.two)) < 0
    assert sum(problem in line for line in rotated.server.lines) == 1


def test_an_authority_that_is_not_trusted_any_more_has_no_new_connections(rotated: Rotated) -> None:
    mine, others = (rotated.access(authority, rotated.one) for authority in (rotated.one, rotated.two))
    assert scored(rotated.server, mine) < 0
    rotated.put(rotated.one.issue("server"), rotated.two)
    assert scored(rotated.server, others) < 0
    with pytest.raises(Unavailable):
        scored(rotated.server, mine, timeout=2.0)
