"""Who calls: the owner of a token, the name in a client's certificate, or else the address."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from google.rpc import code_pb2

from nmt_core.serving.errors import Refusal

if TYPE_CHECKING:
    from nmt_core.serving.credentials import Owner, Tokens


class Client(NamedTuple):
    """``key`` is what limits are counted by, ``user`` the name in the log (empty for an address).

    ``models`` are those that it may use (None: all).
    """

    key: str
    user: str = ""
    models: frozenset[str] | None = None


def identify(peer: str, certificate: str, metadata: Mapping[str, Any], tokens: Tokens | None) -> Client:
    """The client of a call, from what came before its message. Raises Refusal: UNAUTHENTICATED.

    ``certificate`` is the name that the connection proves, if any, ``metadata`` what the call says.
    """
    if tokens is not None:
        owner = check_token(metadata, tokens)
        return Client(f"token {owner.name}", owner.name, owner.models)
    if certificate:
        return Client(f"certificate {certificate}", certificate)
    return Client(f"address {address_of(peer)}")


def check_token(metadata: Mapping[str, Any], tokens: Tokens) -> Owner:
    """The owner of the token in the metadata of a call. Raises Refusal."""
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

    ``facts`` are what the connection proves. Raises Refusal for a certificate of a server.
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
    from cryptography import x509
    from cryptography.x509.oid import ExtendedKeyUsageOID

    try:
        uses = x509.load_pem_x509_certificate(pem).extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    except x509.ExtensionNotFound:
        return True
    except ValueError:
        return False
    return ExtendedKeyUsageOID.CLIENT_AUTH in uses or ExtendedKeyUsageOID.ANY_EXTENDED_KEY_USAGE in uses


def _unauthenticated(problem: str) -> Refusal:
    return Refusal(problem, code=code_pb2.UNAUTHENTICATED, reason="UNAUTHENTICATED")
