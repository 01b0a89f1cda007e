"""The options of ``nmt-core decode`` about advice, and the file of posteriors it comes from."""

from __future__ import annotations

import argparse
import itertools
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import NamedTuple

from nmt_core.base.errors import ConfigError, InputError
from nmt_core.base.interfaces import NgramGuidance
from nmt_core.base.messages import counted
from nmt_core.base.numbers import whole_number
from nmt_core.base.words import split_words
from nmt_core.files import read_text_lines
from nmt_core.inference.lines import SourceLine
from nmt_core.inference.search.ngram_guidance import FACTORS

_WEIGHT = 0.3


_ROUNDING = 1e-6


class Posteriors(NamedTuple):
    """Those of one sentence, and the last line of the file that they stand in."""

    sentence: int
    of_ngrams: dict[tuple[str, ...], float]
    line: int


def with_advice(args: argparse.Namespace, lines: Iterable[str | SourceLine]) -> Iterator[str | SourceLine]:
    """The lines with what ``--advice`` says. Raises ConfigError for bad options, InputError for a bad line."""
    if args.advice is None:
        if args.advice_weight is not None or args.advice_factors is not None or args.advice_joined:
            raise ConfigError("--advice-weight and --advice-factors are for --advice, and so is --advice-joined")
        yield from lines
        return
    _check(args)
    weight = _WEIGHT if args.advice_weight is None else _number(args.advice_weight, "--advice-weight")
    factors = FACTORS if args.advice_factors is None else _factors(args.advice_factors)
    waiting = read_posteriors(args.advice)
    known = next(waiting, None)
    number = -1
    for number, line in enumerate(lines):
        if known is None or known.sentence != number:
            yield line
            continue
        asked = line if isinstance(line, SourceLine) else SourceLine(line)
        yield replace(asked, guidance=NgramGuidance(known.of_ngrams, weight, factors, args.advice_joined))
        known = next(waiting, None)
    if known is not None:
        lines_are = counted(number + 1, "line is", "lines are")
        problem = f"has n-grams of line {known.sentence}, but only {lines_are} to be translated"
        raise InputError(args.advice, f"{problem} (counted from 0)", line=known.line)


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


def _check(args: argparse.Namespace) -> None:
    for option in ("raw", "sample", "candidates"):
        if getattr(args, option):
            raise ConfigError(f"--advice is for search among all words of tokenised text; leave out --{option}")


def _factors(text: str) -> tuple[float, ...]:
    parts = text.split(",")
    try:
        values = tuple(_number(float(part), "--advice-factors") for part in parts)
    except ValueError:
        raise ConfigError(f"--advice-factors {text!r}: expected numbers with commas between, such as 1,0.6") from None
    if len(values) > 9:
        raise ConfigError("--advice-factors: n-grams have at most 9 words")
    return values


def _number(value: float, option: str) -> float:
    if not 0.0 <= value <= 1000.0:
        raise ConfigError(f"{option} must be from 0 to 1000")
    return value
