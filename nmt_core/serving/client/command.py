"""The work of ``nmt-core client``: translate or score with a server, as a filter, or ask for its health."""

from __future__ import annotations

import argparse
import itertools
from collections.abc import Iterable, Iterator
from typing import Any

from nmt_core.base.errors import InputError
from nmt_core.base.messages import say
from nmt_core.base.words import nbest_line
from nmt_core.files import open_output, read_parallel_lines, read_text_lines, write_lines
from nmt_core.serving.client.client import NmtClient
from nmt_core.serving.client.connection import Access, health_problem, split_addresses

_PRIORITIES = {"auto": "PRIORITY_UNSPECIFIED", "interactive": "PRIORITY_INTERACTIVE", "bulk": "PRIORITY_BULK"}
_OPTIONS = ("beam", "nbest")


def run_client(args: argparse.Namespace) -> int:
    """Ask and print."""
    if args.what == "health":
        return _health(args)
    with NmtClient(args.address, model=args.model, timeout=args.timeout, access=_access(args)) as client:
        lines = _scores(args, client) if args.what == "score" else _translations(args, client)
        with open_output("-") as stream:
            while part := list(itertools.islice(lines, args.window)):
                write_lines(stream, part)
    return 0


def _health(args: argparse.Namespace) -> int:
    """Ask every address; say on stderr what is wrong with the first that is not ready."""
    for address in split_addresses(args.address):
        problem = health_problem(address, timeout=args.timeout, access=_access(args))
        if problem:
            say(f"nmt-core client: {address}: {problem}")
            return 1
    return 0


def _access(args: argparse.Namespace) -> Access:
    token = None
    if args.token_file:
        words = next(read_text_lines(args.token_file), "").split()
        if not words:
            raise InputError(args.token_file, "expected a token in the first line")
        token = words[-1]
    return Access(args.tls, args.tls_ca, args.tls_cert, args.tls_key, token)


def _translations(args: argparse.Namespace, client: NmtClient) -> Iterator[str]:
    options: dict[str, Any] = {"priority": _PRIORITIES[args.priority], "raw": args.raw}
    options |= {"forbid_unknown": args.forbid_unk, "replace_unknown": args.replace_unk}
    options |= {name: getattr(args, name) for name in _OPTIONS if getattr(args, name) is not None}
    answers = client.translate_lines(read_text_lines(args.source), window=args.window, **options)
    for number, sentence in enumerate(_checked(answers, args.source)):
        if args.nbest is None:
            yield sentence.translations[0].text
            continue
        for found in sentence.translations:
            yield nbest_line(number, found.text, f"{args.feature_name}= {found.log_prob:.6f}", found.score)


def _scores(args: argparse.Namespace, client: NmtClient) -> Iterator[str]:
    pairs = ((source, target) for source, target in read_parallel_lines([args.source, args.target]))
    form = "TEXT_FORM_RAW" if args.raw else "TEXT_FORM_SURFACE" if args.surface else "TEXT_FORM_UNSPECIFIED"
    options = {"priority": _PRIORITIES[args.priority], "per_word": args.per_word, "form": form}
    for score in _checked(client.score_pairs(pairs, window=args.window, **options), args.source):
        if args.per_word:
            yield " ".join(f"{value:.6f}" for value in score.word_log_probs)
        else:
            yield f"{score.log_prob:.6f}"


def _checked(answers: Iterable[Any], path: str) -> Iterator[Any]:
    """The answers; the first that is an error ends the command with its line."""
    for number, answer in enumerate(answers, start=1):
        if answer.HasField("error"):
            raise InputError(path, answer.error.message, line=number)
        yield answer
