"""The lines that ``nmt-core decode`` reads, with what is asked of their translations: phrases, n-grams."""

from __future__ import annotations

import argparse
import itertools
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import NamedTuple

from nmt_core.base.errors import InputError
from nmt_core.base.interfaces import NgramGuidance
from nmt_core.base.messages import counted
from nmt_core.base.words import check_words, split_words, whole_number
from nmt_core.files import read_text_lines
from nmt_core.inference.commands.arguments import SearchOptions
from nmt_core.inference.lines import SourceLine
from nmt_core.inference.moses_xml import parse_xml_line
from nmt_core.inference.search.ngram_guidance import FACTORS

_ROUNDING = 1e-6


class LineWindow(NamedTuple):
    """Lines that are translated together; ``first`` is the number of the first, from 1."""

    first: int
    lines: list[SourceLine]


def read_source_lines(args: argparse.Namespace) -> Iterator[SourceLine]:
    """The lines of ``--input`` with the phrases that their markup asks for.

    Raises InputError for a bad or long line.
    """
    for number, text in enumerate(read_text_lines(args.input), start=1):
        line = SourceLine(text) if args.xml_input == "pass-through" else _without_markup(args, number, text)
        check_words(line.text, args.max_words, path=args.input, line=number)
        yield line


def _without_markup(args: argparse.Namespace, number: int, text: str) -> SourceLine:
    try:
        return parse_xml_line(text, mode=args.xml_input)
    except ValueError as error:
        raise InputError(args.input, str(error), line=number) from error


class _Posteriors(NamedTuple):
    """Those of one sentence, and the last line of the file that they stand in."""

    sentence: int
    of_ngrams: dict[tuple[str, ...], float]
    line: int


def with_guidance(lines: Iterable[SourceLine], path: str, options: SearchOptions) -> Iterator[SourceLine]:
    """The lines with their n-grams, in the order of the file at ``path``. Raises InputError for a bad line of it."""
    factors = options.guidance_factors or FACTORS
    waiting = _read_posteriors(path)
    known = next(waiting, None)
    number = -1
    for number, line in enumerate(lines):
        if known is None or known.sentence != number:
            yield line
            continue
        guidance = NgramGuidance(known.of_ngrams, options.guidance_weight, factors, options.guidance_joined)
        yield replace(line, guidance=guidance)
        known = next(waiting, None)
    if known is not None:
        lines_are = counted(number + 1, "line is", "lines are")
        problem = f"has n-grams of line {known.sentence}, but only {lines_are} to be translated"
        raise InputError(path, f"{problem} (counted from 0)", line=known.line)


def _read_posteriors(path: str) -> Iterator[_Posteriors]:
    """The posteriors of one sentence after the other, in ascending order. Raises InputError for a bad line."""
    last = -1
    for sentence, rows in itertools.groupby(_rows(path), key=lambda row: row[0]):
        ngrams = list(rows)
        found, line = {ngram: posterior for _, ngram, posterior, _ in ngrams}, ngrams[-1][3]
        if sentence <= last:
            raise InputError(path, f"n-grams of line {sentence} come after those of {last}; sort the file", line=line)
        yield _Posteriors(sentence, found, line)
        last = sentence


def _rows(path: str) -> Iterator[tuple[int, tuple[str, ...], float, int]]:
    for number, line in enumerate(read_text_lines(path, errors="replace"), start=1):
        fields = line.split("|||")
        sentence = whole_number(fields[0].strip())
        words = tuple(split_words("|||".join(fields[1:-1])))
        try:
            posterior = float(fields[-1])
        except ValueError:
            posterior = -1.0
        if sentence is None or not words or not 0.0 <= posterior <= 1.0 + _ROUNDING:
            problem = "expected 'line ||| n-gram ||| probability', as `smt-bridge graph list-posteriors` writes it"
            raise InputError(path, problem, line=number)
        yield sentence, words, min(posterior, 1.0), number
