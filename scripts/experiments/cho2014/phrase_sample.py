"""Source phrases of a table for a map, and phrases that are the words of others in another order; in constant memory.

Phrases are drawn by the digests of seed and text, so that the choice depends on no window and no order.
"""

from __future__ import annotations

import hashlib
import heapq
from collections.abc import Iterator

from smt_bridge.moses_lines import phrase_of
from smt_bridge.tables.table import read_windows, split_window

_ORDERS = 250  # groups of phrases of the same words that are looked at
_MOST_BAGS = 500_000


def digest(seed: int, text: str) -> int:
    """A number of 64 bits; the phrases with the smallest ones are drawn."""
    content = f"{seed} {text}".encode("utf-8", "surrogatepass")
    return int.from_bytes(hashlib.blake2b(content, digest_size=8).digest(), "big")


def long_sources(path: str, *, minimum_words: int) -> Iterator[str]:
    """The source phrases of so many words or more, each once, in the order of the table. Raises FormatError."""
    before = b""
    for window in read_windows(path):
        for phrase in map(phrase_of, split_window(window).sources):
            if phrase != before and phrase.count(b" ") + 1 >= minimum_words:
                yield phrase.decode("utf-8", "replace")
            before = phrase


class _Counts:
    """How often numbers came: all of them, or, where there are many, the smallest ones."""

    def __init__(self) -> None:
        self._counts: dict[int, int] = {}
        self._largest = 1 << 64

    def add(self, number: int) -> None:
        """Count it, unless it is larger than those that are kept."""
        if number > self._largest:
            return
        self._counts[number] = self._counts.get(number, 0) + 1
        if len(self._counts) >= 2 * _MOST_BAGS:
            kept = sorted(self._counts)[:_MOST_BAGS]
            self._counts = {one: self._counts[one] for one in kept}
            self._largest = kept[-1]

    def repeated(self) -> list[int]:
        """Those that came more than once, the smallest first."""
        return sorted(number for number, count in self._counts.items() if count > 1)


class Sample:
    """Draws ``points`` phrases; ``reordered`` finds, in a second pass, phrases of the same words as others."""

    def __init__(self, path: str, *, minimum_words: int, points: int, seed: int) -> None:
        self._path, self._words, self._seed = path, minimum_words, seed
        kept: list[tuple[int, str]] = []
        self.available, bags = 0, _Counts()
        for phrase in long_sources(path, minimum_words=minimum_words):
            heapq.heappush(kept, (-digest(seed, phrase), phrase))
            if len(kept) > points:
                heapq.heappop(kept)
            bags.add(self._bag(phrase))
            self.available += 1
        self.phrases = [phrase for _, phrase in sorted(kept, key=lambda one: -one[0])]
        self._shared = frozenset(bags.repeated()[:_ORDERS])

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
