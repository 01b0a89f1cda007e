"""``nmt-core client``: translate or score with a server, as a filter."""

from __future__ import annotations

import argparse
import itertools
import os
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from nmt_core.base.messages import say
from nmt_core.files import InputFile, writes_standard_output
from nmt_core.text.nbest_line import check_feature_name, nbest_line

if TYPE_CHECKING:
    from nmt_core.serving.client.client import NmtClient

NAME = "client"

_EPILOG = """\
examples:
  nmt-core client translate --address localhost:50551 --raw < test.en > test.fr
  nmt-core client translate --nbest 10 --beam 12 test.tok.en > nbest.txt
  nmt-core client score --address gpu1:50551,gpu2:50551 --model en-fr test.tok.en test.tok.fr > logprobs

--nbest N, and --samples N, write lists as Moses does: number ||| translation ||| NMT0= log p ||| score. With several
addresses the servers share the work. A file of any size takes constant memory.
"""

_OPTIONS = ("beam", "nbest", "samples", "temperature", "seed")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Define the options."""
    parser.epilog = _EPILOG
    writes_standard_output(parser)
    kinds = parser.add_subparsers(dest="what", required=True, metavar="translate|score|health")
    translate = kinds.add_parser("translate", help="translate lines")
    translate.add_argument(
        "source", type=InputFile, nargs="?", default="-", metavar="SOURCE", help="source text (default: stdin)"
    )
    translate.add_argument("--beam", type=int, metavar="K", help="hypotheses followed (default: the server's)")
    translate.add_argument("--nbest", type=int, metavar="N", help="write lists of the N best translations")
    translate.add_argument("--samples", type=int, metavar="N", help="draw N translations instead of searching")
    translate.add_argument("--temperature", type=float, metavar="T", help="of --samples (default: 1)")
    translate.add_argument("--seed", type=int, metavar="N", help="of --samples (default: 1)")
    translate.add_argument("--feature-name", default="NMT0", metavar="NAME", help="in n-best lists (default: NMT0)")
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


def _add_work(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--model", default="", metavar="NAME", help="may be left out if the server has one model")
    parser.add_argument(
        "--priority", choices=["auto", "interactive", "bulk"], default="bulk", help="who goes first (default: bulk)"
    )
    parser.add_argument("--window", type=int, default=500, metavar="N", help="lines of a request (default: 500)")


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


def run(args: argparse.Namespace) -> int:
    """Ask and print."""
    from nmt_core.base.errors import ConfigError
    from nmt_core.files import open_output, write_lines

    os.environ.setdefault("GRPC_VERBOSITY", "NONE")  # what goes wrong is told in our own words
    from nmt_core.serving.client.client import NmtClient
    from nmt_core.serving.client.connection import check_timeout

    check_timeout(args.timeout)
    if args.what == "health":
        return _health(args)
    if args.window < 1:
        raise ConfigError("--window must be at least 1")
    for option in ("beam", "nbest", "samples"):
        if getattr(args, option, None) is not None and getattr(args, option) < 1:
            raise ConfigError(f"--{option} must be at least 1")
    if args.what == "translate":
        check_feature_name(args.feature_name)
    with NmtClient(args.address, model=args.model, timeout=args.timeout, access=_access(args)) as client:
        lines = _scores(args, client) if args.what == "score" else _translations(args, client)
        with open_output("-") as stream:
            while part := list(itertools.islice(lines, args.window)):
                write_lines(stream, part)
    return 0


def _health(args: argparse.Namespace) -> int:
    """Ask every address; say on stderr what is wrong with the first that is not ready."""
    from nmt_core.serving.client.connection import health_problem, split_addresses

    for address in split_addresses(args.address):
        problem = health_problem(address, timeout=args.timeout, access=_access(args))
        if problem:
            say(f"nmt-core {NAME}: {address}: {problem}")
            return 1
    return 0


def _access(args: argparse.Namespace) -> Any:
    from nmt_core.base.errors import InputError
    from nmt_core.files import read_text_lines
    from nmt_core.serving.client.connection import Access

    token = None
    if args.token_file:
        words = next(read_text_lines(args.token_file), "").split()
        if not words:
            raise InputError(args.token_file, "expected a token in the first line")
        token = words[-1]
    return Access(args.tls, args.tls_ca, args.tls_cert, args.tls_key, token)


def _translations(args: argparse.Namespace, client: NmtClient) -> Iterator[str]:
    from nmt_core.files import read_text_lines
    from nmt_core.serving.client.client import PRIORITIES

    options: dict[str, Any] = {"priority": PRIORITIES[args.priority], "raw": args.raw}
    options |= {"forbid_unknown": args.forbid_unk, "replace_unknown": args.replace_unk}
    options |= {name: getattr(args, name) for name in _OPTIONS if getattr(args, name) is not None}
    answers = client.translate_lines(read_text_lines(args.source), window=args.window, **options)
    for number, sentence in enumerate(_checked(answers, args.source)):
        if args.nbest is None and args.samples is None:
            yield sentence.translations[0].text
            continue
        for found in sentence.translations:
            yield nbest_line(number, found.text, f"{args.feature_name}= {found.log_prob:.6f}", found.score)


def _scores(args: argparse.Namespace, client: NmtClient) -> Iterator[str]:
    from nmt_core.files import read_parallel_lines
    from nmt_core.serving.client.client import PRIORITIES

    pairs = ((source, target) for source, target in read_parallel_lines([args.source, args.target]))
    options = {"priority": PRIORITIES[args.priority], "per_word": args.per_word, "form": _form(args)}
    for score in _checked(client.score_pairs(pairs, window=args.window, **options), args.source):
        if args.per_word:
            yield " ".join(f"{value:.6f}" for value in score.word_log_probs)
        else:
            yield f"{score.log_prob:.6f}"


def _form(args: argparse.Namespace) -> int:
    from nmt_core.v1 import nmt_pb2 as pb

    if args.raw:
        return pb.TEXT_FORM_RAW
    return pb.TEXT_FORM_SURFACE if args.surface else pb.TEXT_FORM_UNSPECIFIED


def _checked(answers: Iterable[Any], path: str) -> Iterator[Any]:
    """The answers; the first that is an error ends the command with its line."""
    from nmt_core.base.errors import InputError

    for number, answer in enumerate(answers, start=1):
        if answer.HasField("error"):
            raise InputError(path, answer.error.message, line=number)
        yield answer
