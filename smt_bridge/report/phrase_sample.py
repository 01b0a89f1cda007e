"""Source phrases of a table for a map, and phrases that are the words of others in another order; in constant memory.

Phrases are drawn by the digests of seed and text, so that the choice depends on no window and no order.
"""

from __future__ import annotations

import hashlib
import heapq
from collections.abc import Iterator

import numpy as np

from smt_bridge.fields import text_of
from smt_bridge.formats.phrase_table import read_windows, split_window

_ORDERS = 250  # groups of phrases of the same words that are looked at


def digest(seed: int, text: str) -> int:
    """A number of 64 bits; the phrases with the smallest ones are drawn."""
    content = f"{seed} {text}".encode("utf-8", "surrogatepass")
    return int.from_bytes(hashlib.blake2b(content, digest_size=8).digest(), "big")


def long_sources(path: str, *, minimum_words: int) -> Iterator[str]:
    """The source phrases of so many words or more, each once, in the order of the table. Raises FormatError."""
    before = b""
    for window in read_windows(path):
        for source in split_window(window).sources:
            if source != before and source.strip().count(b" ") + 1 >= minimum_words:
                yield text_of(source)
            before = source


class Sample:
    """Draws ``points`` phrases; ``reordered`` finds, in a second pass, phrases of the same words as others."""

    def __init__(self, path: str, *, minimum_words: int, points: int, seed: int) -> None:
        self._path, self._words, self._seed = path, minimum_words, seed
        kept: list[tuple[int, str]] = []
        bags: list[int] = []
        for phrase in long_sources(path, minimum_words=minimum_words):
            heapq.heappush(kept, (-digest(seed, phrase), phrase))
            if len(kept) > points:
                heapq.heappop(kept)
            bags.append(self._bag(phrase))
        self.available = len(bags)
        self.phrases = [phrase for _, phrase in sorted(kept, key=lambda one: -one[0])]
        found, counts = np.unique(np.array(bags, dtype=np.uint64), return_counts=True)
        self._shared = frozenset(found[counts > 1][:_ORDERS].tolist())

    def reordered(self) -> list[tuple[str, str]]:
        """Pairs of phrases of the same words in another order: of each drawn group the first two by text."""
        groups: dict[int, list[str]] = {}
        for phrase in long_sources(self._path, minimum_words=self._words):
            if (bag := self._bag(phrase)) in self._shared:
                groups.setdefault(bag, []).append(phrase)
        pairs = (sorted(group)[:2] for _, group in sorted(groups.items()))
        return [(first, second) for first, second in pairs]

    def _bag(self, phrase: str) -> int:
        return digest(self._seed, " ".join(sorted(phrase.split(" "))))
