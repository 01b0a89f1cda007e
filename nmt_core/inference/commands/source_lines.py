"""The options of ``nmt-core decode`` about what translations must have, and the lines they make."""

from __future__ import annotations

import argparse
import itertools
from collections.abc import Iterable, Iterator

from nmt_core.base.errors import ConfigError, InputError
from nmt_core.base.words import check_factors
from nmt_core.files import read_parallel_lines, read_text_lines
from nmt_core.inference.commands.advice import with_advice
from nmt_core.inference.commands.long_lines import within_limit
from nmt_core.inference.lines import PhraseConstraint, SourceLine
from nmt_core.inference.moses_xml import parse_xml_line


def with_factors_checked(
    args: argparse.Namespace, lines: Iterable[str | SourceLine], *, factors: int, first: int = 0
) -> Iterator[str | SourceLine]:
    """Lines of ``--input``, the first of which is number ``first``. Raises InputError for words without the factors."""
    for number, line in enumerate(lines, start=first + 1):
        if factors and not args.raw:
            check_factors(line if isinstance(line, str) else line.text, factors, path=args.input, line=number)
        yield line


def read_source_lines(args: argparse.Namespace) -> Iterator[str | SourceLine]:
    """The lines of ``--input`` with what is asked of them. Raises ConfigError, or InputError for a bad or long line."""
    return with_advice(args, within_limit(args, _lines(args)))


def _lines(args: argparse.Namespace) -> Iterator[str | SourceLine]:
    if args.prefix is None and args.constraints is None and args.xml_input == "pass-through":
        yield from read_text_lines(args.input)
        return
    _check(args)
    extra = [path for path in (args.prefix, args.constraints) if path is not None]
    for number, fields in enumerate(read_parallel_lines([args.input, *extra]), start=1):
        others = iter(fields[1:])
        prefix = next(others) if args.prefix is not None else ""
        phrases = next(others) if args.constraints is not None else ""
        yield _line(args, number, fields[0], prefix, phrases)


def _check(args: argparse.Namespace) -> None:
    asked = next(
        option
        for option, given in (
            ("--prefix", args.prefix is not None),
            ("--constraints", args.constraints is not None),
            ("--xml-input", True),
        )
        if given
    )
    if args.raw:
        raise ConfigError(f"{asked} is for tokenised text, in the words of the model; leave out --raw")
    if args.sample is not None and args.xml_input != "ignore":
        raise ConfigError(f"{asked} is for search; leave out --sample")


def _line(args: argparse.Namespace, number: int, text: str, prefix: str, phrases: str) -> SourceLine:
    try:
        line = parse_xml_line(text, mode=args.xml_input)
    except ValueError as error:
        raise InputError(args.input, str(error), line=number) from error
    asked = [_constraint(args.constraints, number, phrase) for phrase in phrases.split("\t") if phrase.strip()]
    return SourceLine(line.text, prefix, tuple(itertools.chain(line.constraints, asked)))


def _constraint(path: str, number: int, text: str) -> PhraseConstraint:
    phrases = tuple(phrase.strip(" ") for phrase in text.split("||"))
    if not all(phrases):
        raise InputError(path, f"an alternative without words in {text.strip()!r}", line=number)
    return PhraseConstraint(phrases)
