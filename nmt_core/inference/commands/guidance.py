"""``--guidance`` of ``nmt-core decode``: posteriors of n-grams that another system has, for each line."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import NamedTuple

from nmt_core.base.errors import InputError
from nmt_core.base.interfaces import NgramGuidance
from nmt_core.base.messages import counted
from nmt_core.base.words import split_words, whole_number
from nmt_core.files import read_text_lines
from nmt_core.inference.commands.arguments import SearchOptions
from nmt_core.inference.lines import SourceLine
from nmt_core.inference.search.ngram_guidance import FACTORS

_ROUNDING = 1e-6


class Posteriors(NamedTuple):
    """Those of one sentence, and the last line of the file that they stand in."""

    sentence: int
    of_ngrams: dict[tuple[str, ...], float]
    line: int


def with_guidance(lines: Iterable[str | SourceLine], path: str, options: SearchOptions) -> Iterator[str | SourceLine]:
    """The lines with their n-grams, in the order of the file at ``path``. Raises InputError for a bad line of it."""
    factors = options.guidance_factors or FACTORS
    waiting = read_posteriors(path)
    known = next(waiting, None)
    number = -1
    for number, line in enumerate(lines):
        if known is None or known.sentence != number:
            yield line
            continue
        asked = line if isinstance(line, SourceLine) else SourceLine(line)
        guidance = NgramGuidance(known.of_ngrams, options.guidance_weight, factors, options.guidance_joined)
        yield replace(asked, guidance=guidance)
        known = next(waiting, None)
    if known is not None:
        lines_are = counted(number + 1, "line is", "lines are")
        problem = f"has n-grams of line {known.sentence}, but only {lines_are} to be translated"
        raise InputError(path, f"{problem} (counted from 0)", line=known.line)


def read_posteriors(path: str) -> Iterator[Posteriors]:
    """The posteriors of one sentence after the other, in ascending order. Raises InputError for a bad line."""
    last = -1
    for sentence, rows in itertools.groupby(_rows(path), key=lambda row: row[0]):
        ngrams = list(rows)
        found, line = {ngram: posterior for _, ngram, posterior, _ in ngrams}, ngrams[-1][3]
        if sentence <= last:
            raise InputError(path, f"n-grams of line {sentence} come after those of {last}; sort the file", line=line)
        yield Posteriors(sentence, found, line)
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
            problem = "expected 'line ||| n-gram ||| probability', as `smt-bridge graph posteriors` writes it"
            raise InputError(path, problem, line=number)
        yield sentence, words, min(posterior, 1.0), number
