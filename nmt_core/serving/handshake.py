"""What is wrong with TLS between a client and a server, found out by a handshake when calls fail.

gRPC reports the last address that it tried, so that a name with two addresses may read "connection refused" where the
certificate of the other was not trusted, and a server that wants our certificate is "Socket closed". Free of gRPC.
"""

from __future__ import annotations

import socket
import ssl
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from nmt_core.serving.client.connection import Access

_PATIENCE = 2.0  # seconds for the connection, and for the first word of the server


def tls_problem(address: str, access: Access) -> str:
    """Why a handshake with HOST:PORT fails, or that the server wants one; empty where TLS is not what is wrong."""
    host, _, port = address.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    try:
        context = _context(access)
        with (
            socket.create_connection((host, int(port)), timeout=_PATIENCE) as connection,
            context.wrap_socket(connection, server_hostname=host) as secured,
        ):
            if not access.encrypted:
                return "the server wants TLS (--tls)"
            return _reception(secured)
    except ssl.SSLCertVerificationError as error:
        authority = access.ca or "an authority that this system knows"
        return f"the server's TLS certificate is refused: {error.verify_message}; expected one signed by {authority}"
    except ssl.SSLError as error:
        reason = (error.reason or "the connection was closed").replace("_", " ").lower()
        return f"the TLS handshake failed ({reason}); does the server speak TLS?" if access.encrypted else ""
    except (OSError, ValueError):
        return ""


def _context(access: Access) -> ssl.SSLContext:
    """As the connection is: its authority, our certificate, HTTP/2. Without TLS any certificate will do."""
    context = ssl.create_default_context(cafile=access.ca)
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT  # gRPC is not that strict
    context.set_alpn_protocols(["h2"])
    if not access.encrypted:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if access.certificate is not None:
        context.load_cert_chain(access.certificate, access.key)
    return context


def _reception(secured: ssl.SSLSocket) -> str:
    """What a server says first, with TLS 1.3 also that it refuses our certificate: some then just hang up."""
    try:
        if secured.recv(1):
            return ""
    except (ssl.SSLError, ConnectionResetError):
        pass
    return (
        "the server ends the connection after the TLS handshake; it may want another certificate of ours (--tls-cert)"
    )
