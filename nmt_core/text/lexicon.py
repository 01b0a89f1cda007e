"""The target words of a source word: a lexicon, read from and written as lines of Moses' ``lex.f2e``.

The line ``maison house 0.75`` says p(maison | house) = 0.75: target word, source word, probability. Counted from an
aligned corpus, p(target | source) is the share of a source word's points that go to the target word, as in Moses'
``LexicalTranslationModel.pm``: a word without a point counts as one aligned with NULL.

>>> lexicon = Lexicon({"house": (Candidate("maison", 0.75), Candidate("foyer", 0.1))})
>>> lexicon.best("house")
'maison'
>>> list(lexicon.lines())
['maison house 0.7500000', 'foyer house 0.1000000']
"""

from __future__ import annotations

import collections
import itertools
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from nmt_core.base.errors import InputError
from nmt_core.base.words import escape, is_escaped, needs_escape, unescape
from nmt_core.files import open_output, write_lines
from nmt_core.files.lexicon_lines import NULL, read_lexicon_lines
from nmt_core.text.alignment import LinkedPair
from nmt_core.text.vocabulary import SPECIAL_WORDS, Vocabulary

_LINES_AT_A_TIME = 10_000
_TOKEN = re.compile(r"<[^<>]+>")  # </s>, <unkpos_1>, <row:7>: no word of a text, in an escaped vocabulary too
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


def lexicon_of(pairs: Iterable[LinkedPair], keep: Keep) -> Lexicon:
    """The lexicon of an aligned corpus, by relative frequencies; memory is for its distinct pairs of words."""
    counts = collections.Counter(itertools.chain.from_iterable(map(_linked, pairs)))
    totals: collections.Counter[str] = collections.Counter()
    for (source, _), count in counts.items():
        totals[source] += count
    return collect(((source, target, n / totals[source]) for (source, target), n in counts.items()), keep)


def _linked(pair: LinkedPair) -> Iterator[tuple[str, str]]:
    sources, targets = set(range(len(pair.source))), set(range(len(pair.target)))
    for source, target in pair.points:
        yield pair.source[source], pair.target[target]
        sources.discard(source)
        targets.discard(target)
    yield from ((pair.source[source], NULL) for source in sources)
    yield from ((NULL, pair.target[target]) for target in targets)


_CLEARLY = 10  # times as many words of one kind as of the other


@dataclass(frozen=True)
class FittedLexicon:
    """A lexicon in the words of a model. ``remark`` says what was changed for that, None if nothing."""

    lexicon: Lexicon
    remark: str | None = None


def fit_lexicon(lexicon: Lexicon, source: Vocabulary, target: Vocabulary, *, path: str) -> FittedLexicon:
    """The lexicon for a model of these vocabularies: escaped as they are.

    Raises InputError for a lexicon of the other direction.
    """
    fitted = _as_escaped_as(lexicon, [*source.words, *target.words], path)
    _check_direction(fitted.lexicon, source, target, path)
    return fitted


def _check_direction(lexicon: Lexicon, source: Vocabulary, target: Vocabulary, path: str) -> None:
    """A lexicon of the other direction knows the words too, but on the wrong side."""
    given, generated = set(lexicon.entries), set(_generated(lexicon))
    sources, targets = (set(vocabulary.words[len(SPECIAL_WORDS) :]) for vocabulary in (source, target))
    right = len(given & sources) + len(generated & targets)
    wrong = len(given & targets) + len(generated & sources)
    if wrong > 2 * right:
        raise InputError(
            path,
            f"the lexicon is of the other direction ({wrong} words fit the model that way, {right} this way): "
            "lines must be 'target-word source-word p(target | source)', as in Moses' lex.f2e of this direction",
        )


def _as_escaped_as(lexicon: Lexicon, words: Iterable[str], path: str) -> FittedLexicon:
    """Escape, or undo the escapes, where the model's words and the lexicon's are clearly of different kinds."""
    model = _escapes(words)
    own = _escapes([*lexicon.entries, *_generated(lexicon)])
    if model is None or own is None or model == own:
        return FittedLexicon(lexicon)
    if model:
        remark = f"{path}: its words were escaped (&apos; and the like) as the model's are"
        return FittedLexicon(_renamed(lexicon, _escape_all), remark)
    remark = f"{path}: the escapes of its words (&apos; and the like) were undone, as the model's have none"
    return FittedLexicon(_renamed(lexicon, unescape), remark)


def _escapes(words: Iterable[str]) -> bool | None:
    """Whether words are escaped; None where they do not tell clearly."""
    ordinary = [word for word in words if not _TOKEN.fullmatch(word)]
    escaped = sum(map(is_escaped, ordinary))
    bare = sum(map(needs_escape, ordinary))
    if max(escaped, bare) <= _CLEARLY * min(escaped, bare):
        return None
    return escaped > bare


def _escape_all(word: str) -> str:
    return escape(unescape(word))


def _renamed(lexicon: Lexicon, change: Callable[[str], str]) -> Lexicon:
    entries = (
        (change(source), change(target), probability)
        for source, candidates in lexicon.entries.items()
        for target, probability in candidates
    )
    return collect(entries, Keep(null=True))


def _generated(lexicon: Lexicon) -> Iterable[str]:
    return (candidate.word for candidates in lexicon.entries.values() for candidate in candidates)
