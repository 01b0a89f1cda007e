"""Who may talk to the server: certificates, bearer tokens, and the addresses that need them."""

from __future__ import annotations

import contextlib
import functools
import hmac
import ipaddress
import logging
import os
import ssl
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple

import grpc

from nmt_core.base.errors import ConfigError, InputError, unreadable
from nmt_core.files.small import MOST_OF_A_KEY, read_pem, read_small

if TYPE_CHECKING:
    from cryptography.x509 import Certificate, Name

_SHORTEST_TOKEN = 16
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Certificates:
    """PEM files of the server. With ``clients`` (a CA) clients must show a certificate signed by it."""

    certificate: str
    key: str
    clients: str | None = None

    def credentials(self, renewed: Callable[[Checked], object] = lambda _: None) -> grpc.ServerCredentials:
        """Credentials that follow the files: new connections use what the files hold then. Raises InputError.

        ``renewed`` is told what they say when they have changed, by a thread of the library; what cannot be used is
        logged once.
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
                checked, configuration = self.check(), self._configuration()
            except InputError as error:  # perhaps half-way through a renewal
                _log.error("certificates: %s; new connections use what there was", error)
                return None
            renewed(checked)
            return configuration

        return grpc.dynamic_ssl_server_credentials(first, fetch, require_client_authentication=self.clients is not None)

    def check(self) -> Checked:
        """What the files say.

        Raises InputError where a file cannot be used, or certificate and key do not belong together.
        """
        found = validity(self.certificate)
        check_key(self.key)
        authorities = read_authorities(self.clients) if self.clients else None
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        try:
            context.load_cert_chain(self.certificate, self.key)
        except ssl.SSLError as error:
            if error.reason == "KEY_VALUES_MISMATCH":
                raise InputError(self.key, f"is not the private key of {self.certificate}") from error
            raise InputError(self.certificate, f"cannot be used with {self.key} ({error.reason})") from error
        except OSError as error:  # they were there a moment ago
            raise unreadable(self.certificate, error) from error
        return Checked(found, authorities)

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


class CertificateEnd:
    """When the certificate that new connections are shown ends, in seconds of ``time.time``. Raises InputError.

    It is looked at again when the files have changed; what cannot be used is not shown to anybody either.
    """

    def __init__(self, certificates: Certificates) -> None:
        self._certificates, self._seen = certificates, certificates.state()
        self._end = certificates.check().validity.end.timestamp()

    def __call__(self) -> float:
        """See the class."""
        if (state := self._certificates.state()) != self._seen:
            self._seen = state
            with contextlib.suppress(InputError):
                self._end = self._certificates.check().validity.end.timestamp()
        return self._end


class Validity(NamedTuple):
    """From when to when a certificate is good, in UTC."""

    begin: datetime
    end: datetime

    def problem(self, now: datetime) -> str:
        """What is wrong with it; empty if nothing is."""
        if now < self.begin:
            return f"is not valid before {self.begin:%Y-%m-%d %H:%M} UTC"
        return f"expired on {self.end:%Y-%m-%d %H:%M} UTC" if now > self.end else ""


class Authorities:
    """Who signs the certificates of clients.

    A handshake asks more of a certificate, but only when a connection begins, and connections last. This tells whose
    certificates are no longer trusted since.
    """

    def __init__(self, certificates: Sequence[Certificate]) -> None:
        self._certificates = certificates
        self.trust = functools.lru_cache(maxsize=1024)(self._trust)

    def _trust(self, chain: bytes) -> bool:
        """Whether one of the authorities signed a client's certificate; ``chain`` is PEM, the client's own first."""
        from cryptography import x509

        try:
            current, *others = x509.load_pem_x509_certificates(chain)
        except ValueError:  # what it says of its uses cannot be read either
            return False
        while not any(current == one or _has_signed(one, current) for one in self._certificates):
            issuer = next((one for one in others if _has_signed(one, current)), None)
            if issuer is None:
                return False
            others.remove(issuer)
            current = issuer
        return True


class Checked(NamedTuple):
    """What the files of certificates say."""

    validity: Validity
    authorities: Authorities | None = None


def read_authorities(path: str) -> Authorities:
    """All certificates in a PEM file. Raises InputError."""
    from cryptography import x509

    try:
        return Authorities(x509.load_pem_x509_certificates(read_pem(path, "CERTIFICATE", regular=True)))
    except ValueError as error:
        raise InputError(path, "expected a PEM file with a CERTIFICATE, or several") from error


def _has_signed(issuer: Certificate, certificate: Certificate) -> bool:
    from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm

    if _compared(issuer.subject) != _compared(certificate.issuer):  # of many authorities few need to be tried
        return False
    try:
        _verify(issuer, certificate)
    except UnsupportedAlgorithm:  # the handshake has verified the signature
        return True
    except (InvalidSignature, ValueError):
        return False
    return True


def _compared(name: Name) -> list[tuple[str, str]]:
    """What a handshake compares of a name: neither case nor the number of blanks nor the kind of its strings."""
    return [(part.oid.dotted_string, " ".join(str(part.value).casefold().split())) for part in name]


def _verify(issuer: Certificate, certificate: Certificate) -> None:
    """Raises InvalidSignature for one that is not of the issuer's key, and UnsupportedAlgorithm."""
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric import ec, ed448, ed25519, padding, rsa
    from cryptography.hazmat.primitives.hashes import HashAlgorithm

    signature, content = certificate.signature, certificate.tbs_certificate_bytes
    match issuer.public_key(), certificate.signature_algorithm_parameters, certificate.signature_hash_algorithm:
        case rsa.RSAPublicKey() as key, (padding.PKCS1v15() | padding.PSS()) as padded, HashAlgorithm() as digest:
            key.verify(signature, content, padded, digest)
        case ec.EllipticCurvePublicKey() as key, ec.ECDSA() as algorithm, _:
            key.verify(signature, content, algorithm)
        case (ed25519.Ed25519PublicKey() | ed448.Ed448PublicKey()) as key, None, _:
            key.verify(signature, content)
        case _:
            raise InvalidSignature


def validity(path: str) -> Validity:
    """Of the first certificate in a PEM file. Raises InputError."""
    from cryptography import x509

    try:
        found = x509.load_pem_x509_certificate(read_pem(path, "CERTIFICATE", regular=True))
    except ValueError as error:
        raise InputError(path, "expected a PEM file with a CERTIFICATE") from error
    return Validity(found.not_valid_before_utc, found.not_valid_after_utc)


def check_key(path: str) -> None:
    """Raises InputError for a file without a private key that can be read."""
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

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
