"""The text pairs of a corpus in temporary files: read and tokenised once, and passed through as often as wanted."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from nmt_core.training.data.corpus import Collector, Sentences, TextPair
from nmt_core.training.data.stored import GrowingTexts, StoredTexts

Item = TypeVar("Item")


@dataclass(frozen=True)
class StoredPairs:
    """Sources and targets of equal number, with the alignment points of each pair (source, target) where there are any.

    ``left`` are those that count, or all.
    """

    source: StoredTexts
    target: StoredTexts
    points: Sentences | None = None
    left: NDArray[np.bool_] | None = None

    def __len__(self) -> int:
        return len(self.source) if self.left is None else int(self.left.sum())

    def __iter__(self) -> Iterator[TextPair]:
        if self.points is None:
            return self._left(zip(self.source, self.target, strict=True))
        return self._left(map(self._pair, range(len(self.source))))

    def sources(self) -> Iterator[str]:
        """The source sides."""
        return self._left(self.source)

    def targets(self) -> Iterator[str]:
        """The target sides."""
        return self._left(self.target)

    def without(self, places: NDArray[np.int64]) -> tuple[StoredPairs, list[TextPair]]:
        """The others, and these, in the order of the text; of pairs of which all count."""
        left = np.ones(len(self.source), dtype=bool)
        left[places] = False
        return replace(self, left=left), [self._pair(place) for place in np.flatnonzero(~left).tolist()]

    def _pair(self, place: int) -> TextPair:
        if self.points is None:
            return self.source[place], self.target[place]
        numbers = self.points[place].ids
        return self.source[place], self.target[place], list(zip(numbers[::2], numbers[1::2], strict=True))

    def _left(self, items: Iterable[Item]) -> Iterator[Item]:
        return iter(items) if self.left is None else itertools.compress(items, self.left)


def store_pairs(pairs: Iterable[TextPair]) -> StoredPairs:
    """Read all pairs, which have points all or none. Raises NmtError where there is no space for them."""
    source, target = GrowingTexts(stored=True), GrowingTexts(stored=True)
    points = Collector(stored=True)
    for source_text, target_text, *aligned in pairs:
        source.add(source_text)
        target.add(target_text)
        for links in aligned:
            points.add(list(itertools.chain.from_iterable(links)))
    return StoredPairs(source.texts, target.texts, points.sentences() if len(points) else None)
