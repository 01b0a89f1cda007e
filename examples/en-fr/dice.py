"""Choices by chance that are the same for a seed on every machine: all of them come from `Random.random`."""

from __future__ import annotations

import random
from bisect import bisect
from collections.abc import Sequence
from functools import cache
from itertools import accumulate
from typing import TypeVar

Item = TypeVar("Item")


@cache
def _zipf(count: int) -> list[float]:
    return list(accumulate(1 / (rank + 1.5) for rank in range(count)))


class Dice:
    """A stream of choices."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def chance(self, probability: float) -> bool:
        """True with `probability`."""
        return self._random.random() < probability

    def pick(self, items: Sequence[Item]) -> Item:
        """One of `items`, all equally likely."""
        return items[int(self._random.random() * len(items))]

    def frequent(self, items: Sequence[Item]) -> Item:
        """One of `items`, the first ones more often, as in Zipf's law."""
        sums = _zipf(len(items))
        return items[min(bisect(sums, self._random.random() * sums[-1]), len(items) - 1)]

    def weighted(self, table: dict[Item, float]) -> Item:
        """A key of `table`, as often as its weight says."""
        sums = list(accumulate(table.values()))
        return list(table)[min(bisect(sums, self._random.random() * sums[-1]), len(sums) - 1)]
