"""The lines that ``nmt-core decode`` reads, with what their translations must have."""

from __future__ import annotations

import argparse
import itertools
from collections.abc import Iterable, Iterator

from nmt_core.base.errors import ConfigError, InputError
from nmt_core.base.words import check_factors, check_words
from nmt_core.files import read_parallel_lines, read_text_lines
from nmt_core.inference.commands.guidance import with_guidance
from nmt_core.inference.lines import PhraseConstraint, SourceLine
from nmt_core.inference.moses_xml import parse_xml_line

_SPLIT = "--max-words N,split"


def check_source_options(args: argparse.Namespace) -> None:
    """Raise ConfigError for options that do not go together."""
    options = args.search
    asked = _constraint_options(args)
    if asked and args.raw:
        raise ConfigError(f"{asked[0]} is for tokenised text, in the words of the model; leave out --raw")
    if asked and options.samples_are_drawn and args.xml_input != "ignore":
        raise ConfigError(f"{asked[0]} is for search; leave out --search samples")
    if args.guidance:
        _check_guided(args)
    for key in sorted(options.model_fields_set):
        if key.startswith("guidance_") and not args.guidance:
            raise ConfigError(f"--search {key} is for --guidance; give the file of n-grams")
    if args.max_words.splits:
        _check_one_translation(args)


def _check_guided(args: argparse.Namespace) -> None:
    """Raise ConfigError where n-grams of words cannot guide the search."""
    options = args.search
    others = {
        "--raw": args.raw,
        "--search samples": options.samples_are_drawn,
        "--search candidates": options.candidates,
    }
    for option in (option for option, given in others.items() if given):
        raise ConfigError(f"--guidance is for search among all words of tokenised text; leave out {option}")


def _constraint_options(args: argparse.Namespace) -> list[str]:
    """The options that ask for something in translations."""
    given = {
        "--prefix": args.prefix,
        "--constraints": args.constraints,
        "--xml-input": args.xml_input != "pass-through",
    }
    return [option for option, value in given.items() if value]


def _check_one_translation(args: argparse.Namespace) -> None:
    """Raise ConfigError where more is wanted of a line than one translation of its words."""
    more = {
        "--nbest": args.nbest > 1,
        "--search samples": args.search.samples_are_drawn,
        "--alignments": args.alignments,
        "--guidance": args.guidance,
    }
    for option in (*_constraint_options(args), *(option for option, given in more.items() if given)):
        raise ConfigError(f"{_SPLIT} writes one translation a line; leave out {option}")


def read_source_lines(args: argparse.Namespace) -> Iterator[str | SourceLine]:
    """The lines of ``--input`` with what is asked of them. Raises InputError for a bad or long line."""
    lines = _within_limit(args, _lines(args))
    return with_guidance(lines, args.guidance, args.search) if args.guidance else lines


def _within_limit(args: argparse.Namespace, lines: Iterable[str | SourceLine]) -> Iterator[str | SourceLine]:
    for number, line in enumerate(lines, start=1):
        if not args.max_words.splits:
            text = line if isinstance(line, str) else line.text
            remedy = f", or cut it with {_SPLIT}"
            check_words(text, args.max_words.words, path=args.input, line=number, remedy=remedy)
        yield line


def with_factors_checked(
    args: argparse.Namespace, lines: Iterable[str | SourceLine], *, factors: int, first: int
) -> Iterator[str | SourceLine]:
    """Lines of ``--input``; ``first`` is the number of the first, from 0. Raises InputError for words of others."""
    for number, line in enumerate(lines, start=first + 1):
        if factors and not args.raw:
            check_factors(line if isinstance(line, str) else line.text, factors, path=args.input, line=number)
        yield line


def _lines(args: argparse.Namespace) -> Iterator[str | SourceLine]:
    if not _constraint_options(args):
        yield from read_text_lines(args.input)
        return
    extra = [path for path in (args.prefix, args.constraints) if path is not None]
    for number, fields in enumerate(read_parallel_lines([args.input, *extra]), start=1):
        others = iter(fields[1:])
        prefix = next(others) if args.prefix is not None else ""
        phrases = next(others) if args.constraints is not None else ""
        yield _line(args, number, fields[0], prefix, phrases)


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
