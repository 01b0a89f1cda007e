"""The server's certificates, the tokens that it accepts, and who calls."""

from __future__ import annotations

import hmac
import ipaddress
import logging
import os
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeVar

import grpc
from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.serialization import load_pem_private_key
from google.rpc import code_pb2

from nmt_core.base.errors import ConfigError, InputError
from nmt_core.files.reading import MOST_OF_A_KEY, read_pem, read_small
from nmt_core.serving.errors import RpcError

_SHORTEST_TOKEN = 16
_Loaded = TypeVar("_Loaded")
_log = logging.getLogger(__name__)


class Certificates:
    """PEM files of the server, which it follows. With ``clients`` (a CA) clients must show a certificate signed by it.

    Raises InputError where a file cannot be used, or certificate and key do not belong together.
    """

    def __init__(self, certificate: str, key: str, clients: str | None = None) -> None:
        self._certificate, self._key, self._clients = certificate, key, clients
        self._seen = self._stamps()
        self._configuration = self._read()

    def credentials(self) -> grpc.ServerCredentials:
        """Credentials of the files: each new connection uses what they hold then."""
        wanted = self._clients is not None
        return grpc.dynamic_ssl_server_credentials(self._configuration, self._changed, wanted)

    def _changed(self) -> Any:
        """The library's form of files that have changed, else None. What cannot be used is logged once."""
        before, self._seen = self._seen, self._stamps()
        if self._seen == before:
            return None
        try:
            return self._read()
        except InputError as error:  # perhaps half-way through a renewal
            _log.error("certificates: %s; new connections use what there was", error)
            return None

    def _read(self) -> Any:
        """The library's form of all files: what was checked is what is used."""
        certificate, found = _load(self._certificate, "CERTIFICATE", x509.load_pem_x509_certificate)
        key, private = _load(self._key, "PRIVATE KEY", lambda content: load_pem_private_key(content, None))
        clients = _load(self._clients, "CERTIFICATE", x509.load_pem_x509_certificates)[0] if self._clients else None
        if private.public_key() != found.public_key():
            raise InputError(self._key, f"is not the private key of {self._certificate}")
        return grpc.ssl_server_certificate_configuration([(key, certificate)], root_certificates=clients)

    def _stamps(self) -> list[tuple[int, ...] | None]:
        """Differs when a file was written or replaced, or who may read it has changed. None: a file is not there."""
        return [_stamp(path) for path in (self._certificate, self._key, self._clients) if path]


def _load(path: str, kind: str, load: Callable[[bytes], _Loaded]) -> tuple[bytes, _Loaded]:
    """What a file holds, and what it says."""
    content = read_pem(path, kind, regular=True)
    try:
        return content, load(content)
    except TypeError as error:
        raise InputError(path, "is protected by a password; expected a key without one") from error
    except (ValueError, UnsupportedAlgorithm) as error:
        raise InputError(path, f"expected a PEM file with a {kind}") from error


def _stamp(path: str) -> tuple[int, ...] | None:
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns


class Client(NamedTuple):
    """``key`` is what limits are counted by, ``user`` the name in the log (empty for an address).

    ``models`` are those that it may use (None: all).
    """

    key: str
    user: str = ""
    models: frozenset[str] | None = None


Tokens = Mapping[str, Client]
"""The tokens that are accepted, and whose they are."""


def read_tokens(path: str, *, regular: bool = False) -> Tokens:
    """Lines of NAME TOKEN, or NAME TOKEN MODEL,MODEL.

    Raises InputError for other lines, short tokens, one token twice, none at all, or no ``regular`` file.
    """
    tokens: dict[str, Client] = {}
    try:
        lines = read_small(path, most=MOST_OF_A_KEY, regular=regular).decode("ascii").splitlines()
    except UnicodeDecodeError:
        raise InputError(path, "tokens are made of ASCII characters") from None
    for number, line in enumerate(lines, start=1):
        parts = line.split()
        if not parts or line.startswith("#"):
            continue
        models = parts[2].split(",") if len(parts) == 3 else None
        if not 2 <= len(parts) <= 3 or len(parts[1]) < _SHORTEST_TOKEN or (models is not None and not all(models)):
            problem = f"expected NAME TOKEN, the token of at least {_SHORTEST_TOKEN} characters"
            raise InputError(path, f"{problem}, or NAME TOKEN MODEL,MODEL", line=number)
        name, token = parts[:2]
        if token in tokens:
            raise InputError(path, "this token stands in another line already", line=number)
        tokens[token] = Client(f"token {name}", name, None if models is None else frozenset(models))
    if not tokens:
        raise InputError(path, "has no token; a line holds NAME TOKEN")
    return tokens


def check_exposure(host: str, *, encrypted: bool, insecure: bool) -> None:
    """Raises ConfigError where text and tokens would cross a network unprotected."""
    if not (encrypted or insecure or _is_loopback(host)):
        raise ConfigError(
            f"--host {host} can be reached from other machines and the connection would not be encrypted; "
            "give --tls-cert and --tls-key, or --insecure if the network itself is protected"
        )


def _is_loopback(host: str) -> bool:
    """The address can be reached from this machine only."""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def identify(context: Any, tokens: Tokens | None) -> Client:
    """The client of a call, from what came before its message. Raises RpcError: UNAUTHENTICATED."""
    if tokens is not None:
        return owner_of(context, tokens)
    if certificate := certified_name(context):
        return Client(f"certificate {certificate}", certificate)
    return Client(f"address {address_of(context)}")


def owner_of(context: Any, tokens: Tokens) -> Client:
    """The owner of the token in the metadata of a call, ``Bearer TOKEN``. Raises RpcError.

    Takes the same time for every wrong token.
    """
    given = str(dict(context.invocation_metadata() or ()).get("authorization", ""))
    kind, _, token = given.partition(" ")
    encoded = token.strip().encode("utf-8", "replace")
    owners = [owner for known, owner in tokens.items() if hmac.compare_digest(known.encode(), encoded)]
    if kind.lower() == "bearer" and owners:
        return owners[0]
    problem = "the token is wrong" if given else "a token is needed: metadata 'authorization: Bearer TOKEN'"
    raise RpcError(problem, code=code_pb2.UNAUTHENTICATED, reason="UNAUTHENTICATED")


def address_of(context: Any) -> str:
    """The address of a peer without its port: ``ipv4:10.0.0.1:4711`` is ``ipv4:10.0.0.1``."""
    peer: str = context.peer()
    return peer.rpartition(":")[0] if peer.startswith(("ipv4:", "ipv6:")) else peer


def certified_name(context: Any) -> str:
    """The name that a client's certificate proves: its first alternative name, or else its common name; or none.

    The library accepts no certificate that is for servers only.
    """
    facts = context.auth_context() or {}
    names = [*facts.get("x509_subject_alternative_name", ()), *facts.get("x509_common_name", ())]
    return names[0].decode("utf-8", "replace") if names else ""
