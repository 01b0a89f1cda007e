"""The options of ``nmt-core serve`` about security, and the address that they protect."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from nmt_core.files import Input

if TYPE_CHECKING:
    from nmt_core.serving.metrics import Metrics
    from nmt_core.serving.server import Address
    from nmt_core.serving.watchers import Watchers


def add_security_options(group: argparse._ArgumentGroup) -> None:
    """Define them."""
    group.add_argument(
        "--tls-cert", type=Input, metavar="PEM", help="the server's certificate; renewed when the file changes"
    )
    group.add_argument("--tls-key", type=Input, metavar="PEM", help="its private key")
    group.add_argument(
        "--tls-client-ca", type=Input, metavar="PEM", help="clients must show a certificate signed by this CA"
    )
    group.add_argument(
        "--token-file",
        type=Input,
        metavar="FILE",
        help="clients must show a token; lines of NAME TOKEN [MODEL,...]",
    )
    group.add_argument("--insecure", action="store_true", help="listen on a public address without encryption")
    group.add_argument("--no-reflection", action="store_true", help="do not describe the service to clients")


def read_address(args: argparse.Namespace) -> Address:
    """Where to listen. Raises ConfigError."""
    from nmt_core.base.errors import ConfigError
    from nmt_core.serving.credentials import Certificates, check_exposure
    from nmt_core.serving.server import Address

    for option in ("port", "metrics_port"):
        port = getattr(args, option)
        if port is not None and not 0 <= port <= 65535:
            raise ConfigError(f"--{option.replace('_', '-')} {port}: expected 0 to 65535")
    if "/" in args.host or args.host.partition(":")[0] in ("unix", "unix-abstract"):
        raise ConfigError(f"--host {args.host}: expected a name or an IP address; sockets of files are not listened on")
    if (args.tls_cert is None) != (args.tls_key is None):
        raise ConfigError("--tls-cert and --tls-key belong together")
    if args.tls_client_ca and not args.tls_cert:
        raise ConfigError("--tls-client-ca needs --tls-cert and --tls-key")
    check_exposure(args.host, encrypted=args.tls_cert is not None, insecure=args.insecure)
    certificates = Certificates(args.tls_cert, args.tls_key, args.tls_client_ca) if args.tls_cert else None
    if certificates is not None:
        certificates.check()
    return Address(args.host, args.port, certificates, reflection=not args.no_reflection)


def watch_certificate(address: Address, metrics: Metrics | None) -> None:
    """Let the metrics say when it ends. Raises InputError where it cannot be used."""
    from nmt_core.serving.credentials import CertificateEnd

    if address.certificates is not None and metrics is not None:
        metrics.watch_certificate(CertificateEnd(address.certificates))


def check_certificate(address: Address, watchers: Watchers) -> None:
    """Tell what the files of certificates say. Raises InputError where certificate and key do not fit."""
    if address.certificates is not None:
        watchers.certificates_changed(address.certificates.certificate, address.certificates.check())
