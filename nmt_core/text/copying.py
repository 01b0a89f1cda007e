"""Text in which unknown words say where they come from, and words again of such text (Luong et al. 2015a, section 3).

=========== ===================================== ===========================================================
scheme      source                                target
=========== ===================================== ===========================================================
`copyable`  unknown types are ``<unk_1>``,        an unknown word aligned to one of them is the same token,
            ``<unk_2>`` … from the left           another ``<unk_n>``
`posall`    unknown words are ``<unk>``           behind every word, unknown ones being ``<unk>``, ``<p_d>``: the
                                                  word comes from the source word ``d`` places before its own;
                                                  ``<p_n>``: from none within 7 places
`posunk`    unknown words are ``<unk>``           unknown words alone are ``<unkpos_d>`` or ``<unkpos_n>``
=========== ===================================== ===========================================================

``d`` is the target position less the source position, both counted in words of the text. ``<unk>`` and tokens that
are in a text already stay as they are, so that annotated text is annotated to itself.
"""

from __future__ import annotations

import enum
import functools
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from nmt_core.base.errors import ConfigError
from nmt_core.text.alignment import Points
from nmt_core.text.lexicon import Lexicon
from nmt_core.text.vocabulary import SPECIAL_WORDS, UNKNOWN, Vocabulary

FARTHEST = 7  # places between a word and the one it comes from (section 3.2)
NUMBERED = 20  # unknown types of a source that have a token of their own; the paper is silent

Weight = Callable[[str, str], float]
"""How much a source word and a target word belong together, 0 where they do not."""


class CopyScheme(enum.StrEnum):
    """Stored with the model; most have none."""

    COPYABLE = "copyable"
    POSALL = "posall"
    POSUNK = "posunk"

    @property
    def _stem(self) -> str:
        return {CopyScheme.COPYABLE: "unk", CopyScheme.POSALL: "p", CopyScheme.POSUNK: "unkpos"}[self]

    def token(self, number: int | None) -> str:
        """The token of a number of places, or of a source type; of None that of words from nowhere."""
        return f"<{self._stem}_{'n' if number is None else number}>"

    @property
    def tokens_of_a_word(self) -> int:
        """How many tokens an annotated target has for every word."""
        return 2 if self is CopyScheme.POSALL else 1

    @property
    def source_tokens(self) -> tuple[str, ...]:
        """The words that annotated sources have beside ordinary ones and ``<unk>``."""
        return tuple(map(self.token, range(1, NUMBERED + 1))) if self is CopyScheme.COPYABLE else ()

    @property
    def target_tokens(self) -> tuple[str, ...]:
        """Those of annotated targets."""
        numbers = range(1, NUMBERED + 1) if self is CopyScheme.COPYABLE else range(-FARTHEST, FARTHEST + 1)
        return (*map(self.token, numbers), self.token(None))


def with_tokens(vocabulary: Vocabulary, tokens: Sequence[str]) -> Vocabulary:
    """A vocabulary with tokens right behind ``<unk>``; their counts are 0."""
    first = len(SPECIAL_WORDS)
    rest = [place for place, word in enumerate(vocabulary.words) if place >= first and word not in tokens]
    words = [*SPECIAL_WORDS, *tokens, *(vocabulary.words[place] for place in rest)]
    if vocabulary.counts is None:
        return Vocabulary(words)
    counts = vocabulary.counts
    return Vocabulary(words, [*counts[:first], *(0 for _ in tokens), *(counts[place] for place in rest)])


class Piece(NamedTuple):
    """A word of a text that was restored: the place of its token, and the word, or the place of its source word."""

    place: int
    word: str | None
    source: int | None


def no_weight(source: str, target: str) -> float:
    """Nothing is known of any words."""
    return 0.0


def weight_of(lexicon: Lexicon) -> Weight:
    """p(target | source)."""
    translations = functools.lru_cache(maxsize=1 << 16)(lambda word: dict(lexicon.entries.get(word, ())))
    return lambda source, target: translations(source).get(target, 0.0)


@dataclass(frozen=True)
class Copying:
    """A scheme for the words that ``source`` and ``target`` do not have; ``weight`` chooses among source words."""

    scheme: CopyScheme
    source: Vocabulary
    target: Vocabulary
    weight: Weight = no_weight

    def check(self) -> None:
        """Raise ConfigError where a vocabulary has not the tokens of the scheme."""
        sides = (("source", self.source, self.scheme.source_tokens), ("target", self.target, self.scheme.target_tokens))
        for side, vocabulary, tokens in sides:
            for token in tokens:
                if token not in vocabulary:
                    raise ConfigError(
                        f"copying: {self.scheme}: the {side} vocabulary lacks {token}; "
                        f"give the vocabularies that 'nmt-core annotate --scheme {self.scheme}' wrote"
                    )

    def read_source(self, words: Sequence[str]) -> list[str]:
        """A source as the model reads it, word by word."""
        if self.scheme is not CopyScheme.COPYABLE:
            return [word if word in self.source else UNKNOWN for word in words]
        numbers: dict[str, int] = {}
        for word in words:
            if _is_unknown(word, self.source):
                numbers.setdefault(word, len(numbers) + 1)
        return [self._numbered(numbers.get(word), word) for word in words]

    def _numbered(self, number: int | None, word: str) -> str:
        if number is None:
            return word
        return self.scheme.token(number) if number <= NUMBERED else UNKNOWN

    def read_target(self, source: Sequence[str], target: Sequence[str], points: Points | None = None) -> list[str]:
        """A target as the model reads it.

        Without alignment points an unknown word comes from the source word of largest weight within reach, or from
        an equal one. Raises ConfigError for a target of scheme ``posall`` that has neither points nor tokens.
        """
        if self.scheme is CopyScheme.POSALL:
            return self._with_positions(source, target, points)
        links = None if points is None else _links(points)
        marked = self.read_source(source) if self.scheme is CopyScheme.COPYABLE else []
        return [
            self._token_of(source, marked, place, word, None if links is None else links.get(place, []))
            if _is_unknown(word, self.target)
            else word
            for place, word in enumerate(target)
        ]

    def _token_of(
        self, source: Sequence[str], marked: Sequence[str], place: int, word: str, links: Sequence[int] | None
    ) -> str:
        if self.scheme is CopyScheme.POSUNK:
            return self._position(place, self._from(source, place, word, links))
        unknown = [number for number, other in enumerate(source) if _is_unknown(other, self.source)]
        reached = unknown if links is None else [number for number in links if number in set(unknown)]
        found = self._chosen(source, word, reached, guessed=links is None, place=place)
        return self.scheme.token(None) if found is None else marked[found]

    def _with_positions(self, source: Sequence[str], target: Sequence[str], points: Points | None) -> list[str]:
        if self.has_positions(target):
            return list(target)
        if points is None:
            raise ConfigError(
                "copying: posall: a pair without its word alignment cannot be scored; "
                "give 'nmt-core score' the --word-alignment of its text, or use a model of scheme posunk"
            )
        links = _links(points)
        annotated = []
        for place, word in enumerate(target):
            found = self._chosen(source, word, links.get(place, []), guessed=False, place=place)
            annotated += [word if word in self.target else UNKNOWN, self._position(place, found)]
        return annotated

    def has_positions(self, target: Sequence[str]) -> bool:
        """Whether every word of a target, and nothing else, has a token of scheme ``posall`` behind it."""
        tokens = frozenset(CopyScheme.POSALL.target_tokens)
        return len(target) % 2 == 0 and all((word in tokens) == place % 2 for place, word in enumerate(target))

    def _from(self, source: Sequence[str], place: int, word: str, links: Sequence[int] | None) -> int | None:
        if links is not None:
            return self._chosen(source, word, links, guessed=False, place=place)
        reach = range(max(0, place - FARTHEST), min(len(source), place + FARTHEST + 1))
        return self._chosen(source, word, reach, guessed=True, place=place)

    def _chosen(
        self, source: Sequence[str], word: str, places: Collection[int], *, guessed: bool, place: int
    ) -> int | None:
        """The place of largest weight, of equals the first; a guess without any weight is the nearest equal word."""
        best = max(places, key=lambda one: (self.weight(source[one], word), -one), default=None)
        if best is None or not guessed or self.weight(source[best], word) > 0.0:
            return best
        equal = [one for one in places if source[one] == word]
        return min(equal, key=lambda one: (abs(one - place), one), default=None)

    def _position(self, place: int, found: int | None) -> str:
        distance = None if found is None or abs(place - found) > FARTHEST else place - found
        return self.scheme.token(distance)

    def restored(self, words: Sequence[str], source: Sequence[str]) -> list[Piece]:
        """The words of the text that a model wrote. Words from nowhere, or from beyond the source, are left out.

        ``<unk>`` is one of them, but with `copyable` it is the first source word that is ``<unk>`` for the model.
        """
        if self.scheme is CopyScheme.POSALL:
            return list(_of_pairs(words, len(source)))
        marked = self.read_source(source) if self.scheme is CopyScheme.COPYABLE else []
        tokens = _numbers(self.scheme) | {UNKNOWN: None}
        pieces = []
        for place, word in enumerate(words):
            if word not in tokens:
                pieces.append(Piece(place, word, None))
                continue
            if self.scheme is CopyScheme.COPYABLE:
                found = marked.index(word) if word in marked else None
            else:
                found = _source_of(place, tokens[word], len(source))
            if found is not None:
                pieces.append(Piece(place, None, found))
        return pieces


def _of_pairs(words: Sequence[str], source_words: int) -> Iterator[Piece]:
    """Of words with a token behind each; tokens that are behind no word are nothing."""
    tokens, number = _numbers(CopyScheme.POSALL), -1
    for place, word in enumerate(words):
        if word in tokens:
            continue
        number += 1
        if word != UNKNOWN:
            yield Piece(place, word, None)
            continue
        behind = words[place + 1] if place + 1 < len(words) else ""
        found = _source_of(number, tokens.get(behind), source_words)
        if found is not None:
            yield Piece(place, None, found)


def _source_of(place: int, distance: int | None, source_words: int) -> int | None:
    found = None if distance is None else place - distance
    return found if found is not None and 0 <= found < source_words else None


@functools.cache
def _numbers(scheme: CopyScheme) -> dict[str, int | None]:
    """What the tokens of targets stand for."""
    stem, nowhere = len(scheme.token(0)) - 2, scheme.token(None)
    return {token: None if token == nowhere else int(token[stem:-1]) for token in scheme.target_tokens}


def _is_unknown(word: str, vocabulary: Vocabulary) -> bool:
    return word not in vocabulary and word != UNKNOWN


def _links(points: Points) -> dict[int, list[int]]:
    """The source places of every target place."""
    links: dict[int, list[int]] = {}
    for source, target in sorted(points):
        links.setdefault(target, []).append(source)
    return links
