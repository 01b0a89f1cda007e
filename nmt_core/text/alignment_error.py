"""How far alignments are from those of people (Och and Ney 2003): alignment error rate, precision and recall.

People mark links as sure (S) or possible (P, which has all of S): AER = 1 - (|A and S| + |A and P|) / (|A| + |S|),
precision = |A and P| / |A|, recall = |A and S| / |S|.

>>> links = compared(parse_pharaoh("0-0 1-1 2-1"), parse_gold("0-0 1?1 2-2"))
>>> (round(links.error_rate, 3), round(links.precision, 3), links.recall)
(0.4, 0.667, 0.5)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from nmt_core.base.errors import ConfigError
from nmt_core.text.pharaoh import Points, parse_pharaoh


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
