"""``nmt-core serve``: translation and scoring over gRPC."""

from __future__ import annotations

import argparse
import os

from nmt_core.commands.options import add_precision
from nmt_core.commands.parser import positive
from nmt_core.files import InputFile, NamedInput

RUN = "nmt_core.serving.command:serve"
NAME = "serve"
os.environ.setdefault("GRPC_VERBOSITY", "NONE")  # read when gRPC is loaded: messages are our own

_EPILOG = """\
examples:
  nmt-core serve --model en-fr=runs/en-fr --port 50551
  nmt-core serve --model en-fr=runs/a,runs/b --model fr-en=runs/c --device cuda:1
  nmt-core serve --hybrid en-fr=hybrid.json --model en-fr-neural=runs/search
  nmt-core serve --models /srv/models --host 0.0.0.0 --tls-cert server.pem --tls-key server.key \\
      --token-file tokens --metrics-port 9464 --access-log --limit idle=60 --limit client_calls=100

NAME=DIR,DIR serves an ensemble. The server listens on this machine only unless --host says otherwise, and then
wants certificates or --insecure. SIGTERM and Ctrl-C answer what was accepted, then end; a second one ends at once.
SIGHUP reads models and tokens again; certificates are read again when their files change.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Define the options."""
    parser.epilog = _EPILOG
    parser.set_defaults(program=f"nmt-core {NAME}")
    _add_models(parser)
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on (default: 127.0.0.1)")
    parser.add_argument("--port", type=int, default=50551, metavar="N", help="0 takes a free one (default: 50551)")
    parser.add_argument(
        "--limits", type=InputFile, metavar="FILE", help="limits and times, as KEY: VALUE lines of YAML"
    )
    parser.add_argument(
        "--limit", action="append", default=[], metavar="KEY=VALUE", help="one of them, such as idle=60; repeatable"
    )
    _add_security(parser.add_argument_group("security"))
    _add_telemetry(parser.add_argument_group("telemetry"))


def _add_models(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--model", action="append", default=[], metavar="NAME=DIR", help="a model and its name; DIR as for decode"
    )
    parser.add_argument("--models", metavar="DIR", help="all model folders in this folder, by their names")
    parser.add_argument(
        "--lexicon",
        action="append",
        default=[],
        metavar="NAME=FILE",
        help="of that model, for <unk> that is replaced and for --candidates",
    )
    parser.add_argument(
        "--candidates",
        action="append",
        default=[],
        metavar="NAME=K[,L]",
        help="search that model with its K most frequent words, and L of the lexicon a source word (10)",
    )
    parser.add_argument(
        "--hybrid",
        type=NamedInput,
        action="append",
        default=[],
        metavar="NAME=RECIPE",
        help="Moses and a neural model as a recipe of smt-bridge says, and its name",
    )
    parser.add_argument("--beam", type=int, default=12, metavar="K", help="where a request says nothing (default: 12)")
    parser.add_argument("--device", default="auto", help="auto, cpu, cuda or cuda:N (default: auto)")
    add_precision(parser)
    parser.add_argument(
        "--threads", type=positive, metavar="N", help="threads of PyTorch on the CPU (default: its choice)"
    )


def _add_security(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--tls-cert", type=InputFile, metavar="PEM", help="the server's certificate; renewed when the file changes"
    )
    group.add_argument("--tls-key", type=InputFile, metavar="PEM", help="its private key")
    group.add_argument(
        "--tls-client-ca", type=InputFile, metavar="PEM", help="clients must show a certificate signed by this CA"
    )
    group.add_argument(
        "--token-file",
        type=InputFile,
        metavar="FILE",
        help="clients must show a token; lines of NAME TOKEN [MODEL,...]",
    )
    group.add_argument("--insecure", action="store_true", help="listen on a public address without encryption")


def _add_telemetry(group: argparse._ArgumentGroup) -> None:
    group.add_argument("--metrics-port", type=int, metavar="N", help="Prometheus metrics over HTTP (default: none)")
    group.add_argument("--metrics-host", default="127.0.0.1", metavar="HOST", help="for them (default: 127.0.0.1)")
    group.add_argument("--access-log", action="store_true", help="write a JSON object a call to stdout, without texts")
