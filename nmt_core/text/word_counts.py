"""How often words were aligned with one another, and the lexicon that comes of it.

p(target | source) is the share of a source word's points that go to the target word, as in Moses'
``LexicalTranslationModel.pm``: a word without a point counts as one aligned with NULL.
"""

from __future__ import annotations

import collections
from collections.abc import Iterable, Iterator

from nmt_core.files.lexicon_lines import NULL
from nmt_core.text.aligned_corpus import AlignedPair
from nmt_core.text.lexicon import Keep, Lexicon, collect


class WordCounts:
    """Counts of (source word, target word), which grow with ``add``."""

    def __init__(self) -> None:
        self._pairs: collections.Counter[tuple[str, str]] = collections.Counter()

    def __repr__(self) -> str:
        return f"WordCounts({len(self._pairs)} pairs of words)"

    def add(self, pair: AlignedPair) -> None:
        """Count the points of a sentence pair."""
        self._pairs.update(_linked(pair))

    def lexicon(self, keep: Keep) -> Lexicon:
        """What is kept of the relative frequencies."""
        totals: collections.Counter[str] = collections.Counter()
        for (source, _), count in self._pairs.items():
            totals[source] += count
        entries = ((source, target, count / totals[source]) for (source, target), count in self._pairs.items())
        return collect(entries, keep)


def lexicon_of(pairs: Iterable[AlignedPair], keep: Keep) -> Lexicon:
    """The lexicon of an aligned corpus; memory is for its distinct pairs of words."""
    counts = WordCounts()
    for pair in pairs:
        counts.add(pair)
    return counts.lexicon(keep)


def _linked(pair: AlignedPair) -> Iterator[tuple[str, str]]:
    sources, targets = set(range(len(pair.source))), set(range(len(pair.target)))
    for source, target in pair.points:
        yield pair.source[source], pair.target[target]
        sources.discard(source)
        targets.discard(target)
    yield from ((pair.source[source], NULL) for source in sources)
    yield from ((NULL, pair.target[target]) for target in targets)
