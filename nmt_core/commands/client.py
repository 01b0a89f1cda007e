"""``nmt-core client``: translate or score with a server, as a filter."""

from __future__ import annotations

import argparse
import os

from nmt_core.commands.parser import positive
from nmt_core.files import InputFile

RUN = "nmt_core.serving.client.command:run_client"
NAME = "client"
os.environ.setdefault("GRPC_VERBOSITY", "NONE")  # read when gRPC is loaded: messages are our own

_EPILOG = """\
examples:
  nmt-core client translate --address localhost:50551 --raw < test.en > test.fr
  nmt-core client translate --nbest 10 --beam 12 test.tok.en > nbest.txt
  nmt-core client score --address gpu1:50551,gpu2:50551 --model en-fr test.tok.en test.tok.fr > logprobs

--nbest N writes lists as Moses does: number ||| translation ||| NMT0= log p ||| score. With several
addresses the servers share the work. A file of any size takes constant memory.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Define the options."""
    parser.epilog = _EPILOG
    kinds = parser.add_subparsers(dest="what", required=True, metavar="translate|score|health")
    translate = kinds.add_parser("translate", help="translate lines")
    translate.add_argument(
        "source", type=InputFile, nargs="?", default="-", metavar="SOURCE", help="source text (default: stdin)"
    )
    translate.add_argument("--beam", type=positive, metavar="K", help="hypotheses followed (default: the server's)")
    translate.add_argument("--nbest", type=positive, metavar="N", help="write lists of the N best translations")
    translate.add_argument(
        "--feature-name", type=_feature_name, default="NMT0", metavar="NAME", help="in n-best lists (default: NMT0)"
    )
    translate.add_argument("--raw", action="store_true", help="raw text in, raw text out")
    translate.add_argument("--forbid-unk", action="store_true", help="never write <unk>")
    translate.add_argument("--replace-unk", action="store_true", help="write source words instead of <unk>")
    score = kinds.add_parser("score", help="log p(target | source) of every pair of lines")
    score.add_argument("source", type=InputFile, metavar="SOURCE", help="sources, as the model reads them")
    score.add_argument("target", type=InputFile, metavar="TARGET", help="targets, line by line")
    forms = score.add_mutually_exclusive_group()
    forms.add_argument("--raw", action="store_true", help="running text; numbers are for words as the model reads them")
    forms.add_argument(
        "--surface", action="store_true", help="words as Moses has them; numbers are for these, not for subwords"
    )
    score.add_argument("--per-word", action="store_true", help="a number for every word")
    health = kinds.add_parser("health", help="exit code 0 if the server is ready, 1 if it is not")
    for kind in (translate, score):
        _add_work(kind)
    for kind, timeout in ((translate, 600.0), (score, 600.0), (health, 10.0)):
        _add_connection(kind, timeout)


def _feature_name(text: str) -> str:
    """The type of what is a label in a list."""
    if not text or any(letter in text for letter in " \t|="):
        raise argparse.ArgumentTypeError(f"expected a name without spaces, '|' or '=', found {text!r}")
    return text


def _add_work(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--model", default="", metavar="NAME", help="may be left out if the server has one model")
    parser.add_argument(
        "--priority", choices=["auto", "interactive", "bulk"], default="bulk", help="who goes first (default: bulk)"
    )
    parser.add_argument("--window", type=positive, default=500, metavar="N", help="lines of a request (default: 500)")


def _add_connection(parser: argparse.ArgumentParser, timeout: float) -> None:
    parser.add_argument(
        "--address",
        default="localhost:50551",
        metavar="HOST:PORT",
        help="several, with commas, share the work (default: localhost:50551)",
    )
    parser.add_argument(
        "--timeout", type=float, default=timeout, metavar="S", help=f"seconds for a request (default: {timeout:g})"
    )
    group = parser.add_argument_group("security")
    group.add_argument("--tls", action="store_true", help="encrypt; the server's certificate is checked")
    group.add_argument("--tls-ca", metavar="PEM", help="against this authority instead of the system's")
    group.add_argument("--tls-cert", metavar="PEM", help="our certificate, for servers that want one")
    group.add_argument("--tls-key", metavar="PEM", help="its private key")
    group.add_argument("--token-file", type=InputFile, metavar="FILE", help="the token to show: TOKEN, or NAME TOKEN")
