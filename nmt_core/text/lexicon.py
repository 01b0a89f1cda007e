"""Which target words a source word has: a lexicon, read from and written as lines of Moses' ``lex.f2e``.

The line ``maison house 0.75`` says p(maison | house) = 0.75: target word, source word, probability.

>>> lexicon = Lexicon({"house": (Candidate("maison", 0.75), Candidate("foyer", 0.1))})
>>> lexicon.best("house")
'maison'
>>> lexicon.candidates("cat", 10)
()
>>> list(lexicon.lines())
['maison house 0.7500000', 'foyer house 0.1000000']
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from nmt_core.base.errors import InputError
from nmt_core.files import open_output, write_lines
from nmt_core.files.lexicon_lines import NULL, read_lexicon_lines

_LINES_AT_A_TIME = 10_000
_SLACK = 4  # candidates of a word that are kept before the worse ones are dropped


class Candidate(NamedTuple):
    """A target word, and its probability given the source word."""

    word: str
    probability: float


@dataclass(frozen=True)
class Lexicon:
    """The target words of every source word, best first; equally good ones by code point."""

    entries: Mapping[str, tuple[Candidate, ...]]

    def __len__(self) -> int:
        return len(self.entries)

    def __repr__(self) -> str:
        return f"Lexicon({len(self)} source words)"

    def best(self, word: str) -> str | None:
        """The likeliest target word of a source word; None for a word that is not in the lexicon."""
        found = self.entries.get(word)
        return found[0].word if found else None

    def candidates(self, word: str, k: int) -> tuple[Candidate, ...]:
        """The ``k`` likeliest target words of a source word, or as many as there are."""
        return self.entries.get(word, ())[:k]

    def lines(self) -> Iterator[str]:
        """The lines of the file form, by source word."""
        for source in sorted(self.entries):
            for target, probability in self.entries[source]:
                yield f"{target} {source} {probability:.7f}"

    def save(self, path: str) -> None:
        """Write the file form."""
        lines = self.lines()
        with open_output(path) as stream:
            while part := list(itertools.islice(lines, _LINES_AT_A_TIME)):
                write_lines(stream, part)


@dataclass(frozen=True)
class Keep:
    """Which entries of a lexicon are kept: at most ``top`` of a source word, those with ``minimum`` probability.

    Without ``null`` entries with NULL on either side are left out.
    """

    top: int | None = None
    minimum: float = 0.0
    null: bool = False


def read_lexicon(path: str, keep: Keep | None = None) -> Lexicon:
    """Read the file form, plain or gzip, in memory for what is kept.

    Raises InputError, naming the line, for a malformed line, and where nothing is left.
    """
    keep = keep or Keep()
    lines = (
        (line.given.decode("utf-8", "surrogateescape"), line.generated.decode("utf-8", "surrogateescape"), probability)
        for line in read_lexicon_lines(path)
        if (probability := line.probability) >= keep.minimum
    )
    lexicon = collect(lines, keep)
    if not lexicon.entries:
        raise InputError(path, f"no line has a source word and a target word of at least {keep.minimum:g}")
    return lexicon


def collect(entries: Iterable[tuple[str, str, float]], keep: Keep) -> Lexicon:
    """The lexicon of (source word, target word, probability) in any order; of a pair that comes twice, the likelier."""
    found: dict[str, list[Candidate]] = {}
    for source, target, probability in entries:
        if probability < keep.minimum or (not keep.null and NULL in (source, target)):
            continue
        candidates = found.setdefault(source, [])
        candidates.append(Candidate(target, probability))
        if keep.top is not None and len(candidates) > 2 * keep.top + _SLACK:
            candidates[:] = _best(candidates, keep.top)
    return Lexicon({source: tuple(_best(candidates, keep.top)) for source, candidates in found.items()})


def _best(candidates: list[Candidate], top: int | None) -> list[Candidate]:
    likeliest: dict[str, Candidate] = {}
    for candidate in sorted(candidates, key=lambda one: (-one.probability, one.word)):
        likeliest.setdefault(candidate.word, candidate)
    return list(likeliest.values())[:top]
