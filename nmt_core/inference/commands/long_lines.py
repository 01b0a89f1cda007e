"""Lines of more words than a command takes: refused, or for ``decode`` cut into pieces that are translated as lines."""

from __future__ import annotations

import argparse
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import replace
from math import fsum

from nmt_core.base.errors import ConfigError
from nmt_core.base.words import check_words, cut_words
from nmt_core.inference.lines import SourceLine
from nmt_core.inference.output.finish import Translation

_ALONE = {
    "sample": None,
    "alignments": None,
    "heatmaps": None,
    "prefix": None,
    "constraints": None,
    "advice": None,
    "xml_input": "pass-through",
    "nbest": 1,
}  # options that make more of a line than one translation of its words, and their values when they do not


def check_long_lines(args: argparse.Namespace) -> None:
    """Raise ConfigError where ``--long-lines split`` is given with what cannot be put together again."""
    if args.long_lines == "split":
        for name, value in _ALONE.items():
            if getattr(args, name) != value:
                option = f"--{name.replace('_', '-')}"
                raise ConfigError(f"--long-lines split writes one translation a line; leave out {option}")


def within_limit(
    args: argparse.Namespace, lines: Iterable[str | SourceLine], *, first: int = 0
) -> Iterator[str | SourceLine]:
    """The lines of ``--input``, the first of which is number ``first``, or InputError for a long one to be refused."""
    for number, line in enumerate(lines, start=first + 1):
        if args.long_lines == "refuse":
            text = line if isinstance(line, str) else line.text
            remedy = ", or cut it with --long-lines split"
            check_words(text, args.max_words, path=args.input, line=number, remedy=remedy)
        yield line


class LongLines:
    """Cuts lines into pieces of at most so many words, and makes one translation of those of their pieces."""

    def __init__(self, args: argparse.Namespace) -> None:
        self._most = args.max_words if args.long_lines == "split" else None
        self._pieces: deque[int] = deque()

    def cut(self, lines: Iterable[str | SourceLine]) -> Iterator[str | SourceLine]:
        """The lines, or their pieces."""
        for line in lines:
            if self._most is None or not isinstance(line, str):
                self._pieces.append(1)
                yield line
                continue
            pieces = cut_words(line, self._most)
            self._pieces.append(len(pieces))
            yield from pieces

    def joined(self, stream: Iterable[list[Translation]]) -> Iterator[list[Translation]]:
        """What was found for every line; of pieces the texts of the first translations, and sums of their scores."""
        stream = iter(stream)
        for first in stream:
            others = [next(stream) for _ in range(self._pieces.popleft() - 1)]
            yield _as_one([found[0] for found in (first, *others)]) if others else first


def _as_one(parts: list[Translation]) -> list[Translation]:
    text = " ".join(part.text for part in parts if part.text)
    log_prob, score = fsum(part.log_prob for part in parts), fsum(part.score for part in parts)
    return [replace(parts[0], text=text, log_prob=log_prob, score=score)]
