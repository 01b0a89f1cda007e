"""The lines that ``nmt-core decode`` reads, with what their translations must have."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

from nmt_core.base.errors import InputError
from nmt_core.base.words import check_factors, check_words
from nmt_core.files import read_parallel_lines, read_text_lines
from nmt_core.inference.commands.guidance import with_guidance
from nmt_core.inference.commands.options import SPLIT, DecodeOptions
from nmt_core.inference.lines import PhraseConstraint, SourceLine
from nmt_core.inference.moses_xml import parse_xml_line


def read_source_lines(options: DecodeOptions) -> Iterator[str | SourceLine]:
    """The lines of ``--input`` with what is asked of them. Raises InputError for a bad or long line."""
    lines = _lines(options) if options.max_words.splits else _short_lines(options)
    return with_guidance(lines, options.guidance, options.search) if options.guidance else lines


def _short_lines(options: DecodeOptions) -> Iterator[str | SourceLine]:
    """The lines, none of which has more words than it may."""
    most, remedy = options.max_words.words, f", or cut it with {SPLIT}"
    for number, line in enumerate(_lines(options), start=1):
        check_words(line if isinstance(line, str) else line.text, most, path=options.input, line=number, remedy=remedy)
        yield line


def check_factors_of(options: DecodeOptions, lines: Sequence[str | SourceLine], *, factors: int, first: int) -> None:
    """Raise InputError for words of lines with other factors; ``first`` is the number of the first, from 0."""
    for number, line in enumerate(lines if factors and not options.raw else (), start=first + 1):
        check_factors(line if isinstance(line, str) else line.text, factors, path=options.input, line=number)


def _lines(options: DecodeOptions) -> Iterator[str | SourceLine]:
    if not options.asked:
        yield from read_text_lines(options.input)
        return
    extra = [path for path in (options.prefix, options.constraints) if path is not None]
    for number, fields in enumerate(read_parallel_lines([options.input, *extra]), start=1):
        others = iter(fields[1:])
        prefix = next(others) if options.prefix is not None else ""
        phrases = next(others) if options.constraints is not None else ""
        yield _line(options, number, fields[0], prefix, phrases)


def _line(options: DecodeOptions, number: int, text: str, prefix: str, phrases: str) -> SourceLine:
    try:
        line = parse_xml_line(text, mode=options.xml_input)
    except ValueError as error:
        raise InputError(options.input, str(error), line=number) from error
    asked = [_constraint(options.constraints or "", number, phrase) for phrase in phrases.split("\t") if phrase.strip()]
    return SourceLine(line.text, prefix, tuple(itertools.chain(line.constraints, asked)))


def _constraint(path: str, number: int, text: str) -> PhraseConstraint:
    phrases = tuple(phrase.strip(" ") for phrase in text.split("||"))
    if not all(phrases):
        raise InputError(path, f"an alternative without words in {text.strip()!r}", line=number)
    return PhraseConstraint(phrases)
