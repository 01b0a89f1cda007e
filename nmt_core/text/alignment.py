"""Word alignments: points as Moses writes them, aligned corpora, and alignment error rate.

Points are written ``source-target``, from 0. People mark links as sure (S) or possible (P, which has all of S). For an
alignment A (Och and Ney 2003): AER = 1 - (|A and S| + |A and P|) / (|A| + |S|), precision = |A and P| / |A|,
recall = |A and S| / |S|.

>>> pharaoh([(2, 1), (0, 0)])
'0-0 2-1'
>>> links = compared(parse_pharaoh("0-0 1-1 2-1"), parse_gold("0-0 1?1 2-2"))
>>> (round(links.error_rate, 3), round(links.precision, 3), links.recall)
(0.4, 0.667, 0.5)
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from nmt_core.base.errors import ConfigError, InputError
from nmt_core.base.messages import counted
from nmt_core.base.words import split_words, whole_number
from nmt_core.files import read_parallel_lines

Points = list[tuple[int, int]]


def pharaoh(points: Iterable[tuple[int, int]]) -> str:
    """Points as Moses writes them: ``0-0 2-1``, ordered by source and then target."""
    return " ".join(f"{source}-{target}" for source, target in sorted(points))


def parse_pharaoh(line: str) -> Points:
    """Points from their written form. Raises ConfigError when it is something else."""
    points = []
    for point in line.split():
        source, dash, target = point.partition("-")
        first, second = whole_number(source), whole_number(target)
        if not dash or first is None or second is None:
            raise ConfigError(f"alignment point {point[:60]!r}: expected SOURCE-TARGET, such as 0-1")
        points.append((first, second))
    return points


class LinkedPair(NamedTuple):
    """The words of a sentence pair, and (source, target) points between them, counted from 0."""

    source: list[str]
    target: list[str]
    points: Points


def read_aligned(source: str, target: str, alignment: str) -> Iterator[LinkedPair]:
    """The pairs of three files with as many lines.

    Raises InputError, naming the line, where the alignment is not one of these sentences.
    """
    lines = read_parallel_lines([source, target, alignment])
    for number, (source_line, target_line, points_line) in enumerate(lines, start=1):
        sources, targets = split_words(source_line), split_words(target_line)
        points = points_between(points_line, len(sources), len(targets), path=alignment, line=number)
        yield LinkedPair(sources, targets, points)


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


class GoldPoints(NamedTuple):
    """The links of a sentence that people are sure of, and those that are at least possible."""

    sure: frozenset[tuple[int, int]]
    possible: frozenset[tuple[int, int]]


@dataclass(frozen=True)
class LinkCounts:
    """Links of an alignment, sure links of people, and how many of the first are sure, and are possible."""

    links: int = 0
    sure: int = 0
    found_sure: int = 0
    found_possible: int = 0

    def __add__(self, other: LinkCounts) -> LinkCounts:
        return LinkCounts(
            self.links + other.links,
            self.sure + other.sure,
            self.found_sure + other.found_sure,
            self.found_possible + other.found_possible,
        )

    @property
    def error_rate(self) -> float:
        """AER, 0 where there are no links at all."""
        links = self.links + self.sure
        return 1.0 - (self.found_sure + self.found_possible) / links if links else 0.0

    @property
    def precision(self) -> float:
        """The share of the links that are possible; 1 where there are none."""
        return self.found_possible / self.links if self.links else 1.0

    @property
    def recall(self) -> float:
        """The share of the sure links that were found; 1 where there are none."""
        return self.found_sure / self.sure if self.sure else 1.0


def parse_gold(line: str) -> GoldPoints:
    """Links as people made them: ``0-1`` is sure, ``0?1`` possible. Raises ConfigError for something else."""
    parts = line.split()
    sure = frozenset(_points([part for part in parts if "?" not in part]))
    possible = frozenset(_points([part.replace("?", "-", 1) for part in parts if "?" in part]))
    return GoldPoints(sure, sure | possible)


def compared(points: Points, gold: GoldPoints) -> LinkCounts:
    """The counts of one sentence; a link counts once."""
    links = set(points)
    return LinkCounts(len(links), len(gold.sure), len(links & gold.sure), len(links & gold.possible))


def _points(parts: Sequence[str]) -> Points:
    try:
        return parse_pharaoh(" ".join(parts))
    except ConfigError as error:
        raise ConfigError(f"{error}, or 0?1 for a possible link") from error
