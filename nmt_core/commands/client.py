"""``nmt-core client``: translate or score with a server, as a filter."""

from __future__ import annotations

import argparse
import itertools
from collections.abc import Iterator
from typing import Any

NAME = "client"
HELP = "translate or score with a server"

_EPILOG = """\
examples:
  nmt-core client translate --address localhost:50551 --raw < test.en > test.fr
  nmt-core client score --address localhost:50551 --model en-fr test.tok.en test.tok.fr > logprobs
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Define the options."""
    parser.epilog = _EPILOG
    parser.add_argument("what", choices=["translate", "score"], help="what to ask for")
    parser.add_argument("source", nargs="?", default="-", metavar="SOURCE", help="source text (default: stdin)")
    parser.add_argument("target", nargs="?", metavar="TARGET", help="for score: targets, line by line")
    parser.add_argument("--address", default="localhost:50551", metavar="HOST:PORT", help="(default: localhost:50551)")
    parser.add_argument("--model", default="", metavar="NAME", help="may be left out if the server has one model")
    parser.add_argument("--beam", type=int, metavar="K", help="hypotheses followed (default: the server's)")
    parser.add_argument("--raw", action="store_true", help="raw text in, raw text out")
    parser.add_argument("--forbid-unk", action="store_true", help="never write <unk>")
    parser.add_argument("--window", type=int, default=500, metavar="N", help="lines of a request (default: 500)")


def run(args: argparse.Namespace) -> int:
    """Ask and print."""
    from nmt_core.errors import ConfigError
    from nmt_core.files import open_output, write_lines

    if args.window < 1:
        raise ConfigError("--window must be at least 1")
    if (args.what == "score") != (args.target is not None):
        raise ConfigError("score needs SOURCE and TARGET, translate SOURCE alone")
    answers = _scores(args) if args.what == "score" else _translations(args)
    with open_output("-") as stream:
        for lines in answers:
            write_lines(stream, lines)
    return 0


def _translations(args: argparse.Namespace) -> Iterator[list[str]]:
    from nmt_core.files import read_text_lines
    from nmt_core.serving.client import Connection
    from nmt_core.v1 import nmt_pb2 as pb

    connection = Connection(args.address)
    options: dict[str, Any] = {"model": args.model, "raw": args.raw, "forbid_unknown": args.forbid_unk}
    if args.beam is not None:
        options["beam"] = args.beam
    lines = read_text_lines(args.source)
    while window := list(itertools.islice(lines, args.window)):
        response = connection.call("Translate", pb.TranslateRequest(texts=window, **options))
        yield [sentence.translations[0].text for sentence in response.sentences]


def _scores(args: argparse.Namespace) -> Iterator[list[str]]:
    from nmt_core.files import read_parallel_lines
    from nmt_core.interfaces import SentencePair
    from nmt_core.serving.client import RemotePairScorer

    scorer = RemotePairScorer(args.address, model=args.model or None)
    pairs = (SentencePair(source, target) for source, target in read_parallel_lines([args.source, args.target]))
    while window := list(itertools.islice(pairs, args.window)):
        yield [f"{score.log_prob:.6f}" for score in scorer.score(window)]
