"""Who may talk to the server, and who does: certificates, bearer tokens, and the addresses that need them."""

from __future__ import annotations

import contextlib
import functools
import hmac
import ipaddress
import logging
import os
import ssl
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, NamedTuple

import grpc
from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.serialization import load_pem_private_key
from cryptography.x509.oid import ExtendedKeyUsageOID
from google.rpc import code_pb2

from nmt_core.base.errors import ConfigError, InputError, unreadable
from nmt_core.files.small import MOST_OF_A_KEY, read_pem, read_small
from nmt_core.serving.errors import RpcError

_SHORTEST_TOKEN = 16
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Certificates:
    """PEM files of the server. With ``clients`` (a CA) clients must show a certificate signed by it."""

    certificate: str
    key: str
    clients: str | None = None

    def credentials(self) -> grpc.ServerCredentials:
        """Credentials that follow the files: new connections use what the files hold then. Raises InputError.

        What cannot be used is logged once.
        """
        seen = self.state()
        first = self._configuration()

        def fetch() -> Any:
            nonlocal seen
            state = self.state()
            if state == seen:
                return None
            seen = state
            try:
                self.check_and_warn()
                return self._configuration()
            except InputError as error:  # perhaps half-way through a renewal
                _log.error("certificates: %s; new connections use what there was", error)
                return None

        return grpc.dynamic_ssl_server_credentials(first, fetch, require_client_authentication=self.clients is not None)

    def check_and_warn(self) -> None:
        """Log a certificate that clients will refuse. Raises InputError as ``check``."""
        if problem := self.check().problem(datetime.now(UTC)):
            remedy = "clients will refuse it; renew the file, the server follows it"
            _log.warning("the certificate %s %s: %s", self.certificate, problem, remedy)

    def check(self) -> Validity:
        """When the certificate is valid.

        Raises InputError where a file cannot be used, or certificate and key do not belong together.
        """
        found = validity(self.certificate)
        check_key(self.key)
        if self.clients:
            check_authorities(self.clients)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        try:
            context.load_cert_chain(self.certificate, self.key)
        except ssl.SSLError as error:
            if error.reason == "KEY_VALUES_MISMATCH":
                raise InputError(self.key, f"is not the private key of {self.certificate}") from error
            raise InputError(self.certificate, f"cannot be used with {self.key} ({error.reason})") from error
        except OSError as error:  # they were there a moment ago
            raise unreadable(self.certificate, error) from error
        return found

    def state(self) -> list[tuple[int, ...] | None]:
        """Differs when a file was written or replaced, or who may read it has changed. None: a file is not there."""
        return [_facts(path) for path in (self.certificate, self.key, self.clients) if path]

    def _configuration(self) -> Any:
        pair = read_pem(self.key, "PRIVATE KEY", regular=True), read_pem(self.certificate, "CERTIFICATE", regular=True)
        clients = read_pem(self.clients, "CERTIFICATE", regular=True) if self.clients else None
        return grpc.ssl_server_certificate_configuration([pair], root_certificates=clients)


def _facts(path: str) -> tuple[int, ...] | None:
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns


def certificate_end(certificates: Certificates) -> Callable[[], float]:
    """Tells when the certificate that new connections are shown ends, in seconds of ``time.time``. Raises InputError.

    What cannot be used later is not shown to anybody either.
    """
    latest = certificates.check()

    def end() -> float:
        nonlocal latest
        with contextlib.suppress(InputError):
            latest = certificates.check()
        return latest.end.timestamp()

    return end


class Validity(NamedTuple):
    """From when to when a certificate is good, in UTC."""

    begin: datetime
    end: datetime

    def problem(self, now: datetime) -> str:
        """What is wrong with it; empty if nothing is."""
        if now < self.begin:
            return f"is not valid before {self.begin:%Y-%m-%d %H:%M} UTC"
        return f"expired on {self.end:%Y-%m-%d %H:%M} UTC" if now > self.end else ""


def check_authorities(path: str) -> None:
    """Raises InputError for a file whose certificates cannot be read."""
    try:
        x509.load_pem_x509_certificates(read_pem(path, "CERTIFICATE", regular=True))
    except ValueError as error:
        raise InputError(path, "expected a PEM file with a CERTIFICATE, or several") from error


def validity(path: str) -> Validity:
    """Of the first certificate in a PEM file. Raises InputError."""
    try:
        found = x509.load_pem_x509_certificate(read_pem(path, "CERTIFICATE", regular=True))
    except ValueError as error:
        raise InputError(path, "expected a PEM file with a CERTIFICATE") from error
    return Validity(found.not_valid_before_utc, found.not_valid_after_utc)


def check_key(path: str) -> None:
    """Raises InputError for a file without a private key that can be read."""
    try:
        load_pem_private_key(read_pem(path, "PRIVATE KEY", regular=True), None)
    except TypeError as error:
        raise InputError(path, "is protected by a password; expected a key without one") from error
    except (ValueError, UnsupportedAlgorithm) as error:
        raise InputError(path, "expected a PEM file with a PRIVATE KEY") from error


class Owner(NamedTuple):
    """Whose a token is, and which models it is for (None: all)."""

    name: str
    models: frozenset[str] | None = None


class Tokens:
    """The tokens that are accepted, and whose they are."""

    def __init__(self, owners: Iterable[tuple[Owner, str]]) -> None:
        self._owners = [(owner, token.encode()) for owner, token in owners]

    def by_name(self) -> list[tuple[str, str]]:
        """Names of owners and their tokens."""
        return [(owner.name, token.decode()) for owner, token in self._owners]

    def owner(self, authorization: str) -> Owner | None:
        """The owner of ``Bearer TOKEN``; None for a wrong one. Takes the same time for every wrong one."""
        kind, _, token = authorization.partition(" ")
        given = token.strip().encode("utf-8", "replace")
        found = None
        for owner, expected in self._owners:
            if hmac.compare_digest(given, expected) and kind.lower() == "bearer":
                found = owner
        return found


def read_tokens(path: str, *, regular: bool = False) -> Tokens:
    """Lines of NAME TOKEN, or NAME TOKEN MODEL,MODEL.

    Raises InputError for other lines, short tokens, one token twice, none at all, or no ``regular`` file.
    """
    owners: dict[str, Owner] = {}
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
        if parts[1] in owners:
            raise InputError(path, "this token stands in another line already", line=number)
        owners[parts[1]] = Owner(parts[0], None if models is None else frozenset(models))
    if not owners:
        raise InputError(path, "has no token; a line holds NAME TOKEN")
    return Tokens((owner, token) for token, owner in owners.items())


def check_exposure(host: str, *, encrypted: bool, insecure: bool) -> None:
    """Raises ConfigError where text and tokens would cross a network unprotected."""
    if not (encrypted or insecure or is_loopback(host)):
        raise ConfigError(
            f"--host {host} can be reached from other machines and the connection would not be encrypted; "
            "give --tls-cert and --tls-key, or --insecure if the network itself is protected"
        )


def is_loopback(host: str) -> bool:
    """The address can be reached from this machine only."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


class Client(NamedTuple):
    """``key`` is what limits are counted by, ``user`` the name in the log (empty for an address).

    ``models`` are those that it may use (None: all).
    """

    key: str
    user: str = ""
    models: frozenset[str] | None = None


def identify(peer: str, certificate: str, metadata: Mapping[str, Any], tokens: Tokens | None) -> Client:
    """The client of a call, from what came before its message. Raises RpcError: UNAUTHENTICATED.

    ``certificate`` is the name that the connection proves, if any, ``metadata`` what the call says.
    """
    if tokens is not None:
        owner = check_token(metadata, tokens)
        return Client(f"token {owner.name}", owner.name, owner.models)
    if certificate:
        return Client(f"certificate {certificate}", certificate)
    return Client(f"address {address_of(peer)}")


def check_token(metadata: Mapping[str, Any], tokens: Tokens) -> Owner:
    """The owner of the token in the metadata of a call. Raises RpcError."""
    given = metadata.get("authorization", "")
    owner = tokens.owner(given if isinstance(given, str) else "")
    if owner is None:
        problem = "the token is wrong" if given else "a token is needed: metadata 'authorization: Bearer TOKEN'"
        raise _unauthenticated(problem)
    return owner


def address_of(peer: str) -> str:
    """The address of a peer without its port: ``ipv4:10.0.0.1:4711`` is ``ipv4:10.0.0.1``."""
    return peer.rpartition(":")[0] if peer.startswith(("ipv4:", "ipv6:")) else peer


def certified_name(facts: Mapping[str, Iterable[bytes]]) -> str:
    """The name that a client's certificate proves: its first alternative name, or else its common name.

    ``facts`` are what the connection proves. Raises RpcError for a certificate of a server.
    """
    for certificate in facts.get("x509_pem_cert", ()):
        if not is_for_clients(certificate):
            raise _unauthenticated("the certificate is one for servers, not for clients (extended key usage)")
    for names in ("x509_subject_alternative_name", "x509_common_name"):
        for name in facts.get(names, ()):
            return name.decode("utf-8", "replace")
    return ""


@functools.lru_cache(maxsize=1024)
def is_for_clients(pem: bytes) -> bool:
    """Whether the holder of a certificate may be a client: it says so, or says nothing of uses (RFC 5280, 4.2.1.12)."""
    try:
        uses = x509.load_pem_x509_certificate(pem).extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    except x509.ExtensionNotFound:
        return True
    except ValueError:
        return False
    return ExtendedKeyUsageOID.CLIENT_AUTH in uses or ExtendedKeyUsageOID.ANY_EXTENDED_KEY_USAGE in uses


def _unauthenticated(problem: str) -> RpcError:
    return RpcError(problem, code=code_pb2.UNAUTHENTICATED, reason="UNAUTHENTICATED")
