"""A parallel corpus with its word alignment, read side by side."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from nmt_core.base.errors import ConfigError, InputError
from nmt_core.base.messages import counted
from nmt_core.base.words import split_words
from nmt_core.files import read_parallel_lines
from nmt_core.text.pharaoh import Points, parse_pharaoh


class AlignedPair(NamedTuple):
    """The words of a sentence pair, and (source, target) points between them, counted from 0."""

    source: list[str]
    target: list[str]
    points: Points


def read_aligned(source: str, target: str, alignment: str) -> Iterator[AlignedPair]:
    """The pairs of three files with as many lines.

    Raises InputError, naming the line, where the alignment is not one of these sentences.
    """
    lines = read_parallel_lines([source, target, alignment])
    for number, (source_line, target_line, points_line) in enumerate(lines, start=1):
        sources, targets = split_words(source_line), split_words(target_line)
        points = points_between(points_line, len(sources), len(targets), path=alignment, line=number)
        yield AlignedPair(sources, targets, points)


def points_between(text: str, sources: int, targets: int, *, path: str, line: int) -> Points:
    """The points in line ``line`` of the alignment ``path``, of a pair of so many words.

    Raises InputError, naming the line, where they are not of this pair.
    """
    try:
        points = parse_pharaoh(text)
    except ConfigError as error:
        raise InputError(path, str(error), line=line) from None
    for source, target in points:
        if source >= sources or target >= targets:
            turned = all(one < targets and other < sources for one, other in points)
            cause = "are source and target exchanged?" if turned else "is it the alignment of another corpus?"
            problem = (
                f"point {source}-{target}, but the sentences have {counted(sources, 'word')} and {targets:,}; {cause}"
            )
            raise InputError(path, problem, line=line)
    return points
