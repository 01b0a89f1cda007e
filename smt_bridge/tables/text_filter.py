"""The lines of a table that a decoder can use when it translates a given text: those whose source occurs in it.

As Moses' ``filter-model-given-input.pl``, for phrases and rules of any length, and for every table whose lines begin
with a source phrase: phrase tables, reordering tables, tables of rules.

A phrase occurs where its words stand side by side in a line of the text. A rule occurs where its words do, with one
word or more in the place of every non-terminal, whatever its labels (as ``filter-rule-table.py`` of Moses has it);
rules with ``<s>`` or ``</s>``, those of a glue grammar, always do. An empty source, which Moses skips, does not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby

from nmt_core.base.messages import counted
from nmt_core.files import read_lines
from smt_bridge.errors import FormatError
from smt_bridge.moses_lines import (
    FEWEST_WORDS,
    SEPARATOR,
    factors_of,
    look_factored,
    phrase_of,
    pick_factors,
    split_tokens,
)
from smt_bridge.tables.lines import LOOKED_AT, SENTENCE_ENDS, are_rules, rule_symbols, rule_words

_LONGEST = 10  # words of phrases that are looked up; for longer ones, and rules with gaps, lines are searched
Symbols = Sequence[bytes | None]
"""The words of a rule's source, with None for every non-terminal."""


class SourceText:
    """Finds phrases in lines of words. ``ngrams`` of one length are collected when the first phrase of it is looked up.

    Memory: the n-grams of each length up to ten that the table has.
    """

    def __init__(self, lines: Iterable[bytes]) -> None:
        self.lines = [b" ".join(split_tokens(line)) for line in dict.fromkeys(lines)]
        self._ngrams: dict[int, set[bytes]] = {}
        self._places: dict[bytes, set[int]] | None = None
        self._most_words = max((line.count(b" ") + 1 for line in self.lines if line), default=0)

    def has_phrase(self, field: bytes) -> bool:
        """Whether the words of the field stand side by side in a line."""
        phrase = phrase_of(field)
        words = phrase.count(b" ") + 1
        if words > _LONGEST:
            return self._search(phrase.split(b" "))
        return phrase in self._ngrams_of(words)

    def has_rule(self, symbols: Symbols) -> bool:
        """Whether the words stand in a line in this order, with a word or more in the place of every None."""
        return any(end in symbols for end in SENTENCE_ENDS) or self._search(symbols)

    def _search(self, symbols: Symbols) -> bool:
        words = {symbol for symbol in symbols if symbol is not None}
        if not words:
            return len(symbols) <= self._most_words
        places = self._places_of_words()
        if not words <= places.keys():
            return False
        first, *others = sorted((places[word] for word in words), key=len)
        parts = _parts(symbols)
        return any(_stand_in(b" %b " % self.lines[place], parts) for place in first.intersection(*others))

    def _ngrams_of(self, words: int) -> set[bytes]:
        if words not in self._ngrams:
            found = self._ngrams[words] = set()
            for line in self.lines:
                tokens = line.split(b" ")
                if words == 1:
                    found.update(tokens)
                else:
                    found.update(b" ".join(tokens[place : place + words]) for place in range(len(tokens) - words + 1))
            found.discard(b"")
        return self._ngrams[words]

    def _places_of_words(self) -> dict[bytes, set[int]]:
        if self._places is None:
            self._places = {}
            for place, line in enumerate(self.lines):
                for word in line.split(b" "):
                    self._places.setdefault(word, set()).add(place)
        return self._places


def _parts(symbols: Symbols) -> list[tuple[int, bytes]]:
    """A number of words that are passed over, and words with blanks around them; one after the other."""
    parts = []
    for is_gap, run in groupby(symbols, key=lambda symbol: symbol is None):
        words = list(run)
        parts.append((len(words), b"") if is_gap else (0, b" %b " % b" ".join(word or b"" for word in words)))
    return parts


def _stand_in(line: bytes, parts: Sequence[tuple[int, bytes]]) -> bool:
    """Whether the parts stand in the line; the first place of each leaves most room for those behind it."""
    place = 0  # of a blank
    for passed, words in parts:
        for _ in range(passed):
            place = line.find(b" ", place + 1)
            if place < 0:
                return False
        if words:
            found = line.find(words, place)
            if found < 0:
                return False
            place = found + len(words) - 1
    return True


class SourceFilter:
    """Says of the source fields of one table whether they occur in a text."""

    def __init__(self, text: SourceText) -> None:
        self._text = text
        self._has: Callable[[bytes], bool] = text.has_phrase

    def prepare(self, path: str, beginning: Sequence[bytes]) -> None:
        """Look at the first lines of the table: whether they are rules, and their words have as many factors.

        Raises FormatError where they have not.
        """
        rules = are_rules(path, beginning)
        sources = [line.partition(SEPARATOR)[0] for line in beginning]
        if rules:
            self._has = self._has_rule
            sources = [_words_of_rule(path, number, source) for number, source in enumerate(sources, start=1)]
        of_sources, of_text = _factors(sources), _factors(self._text.lines[:LOOKED_AT])
        if of_sources is not None and of_text is not None and of_sources != of_text:
            problem = (
                f"the words of the sources have {counted(of_sources, 'factor')} and those of the text {of_text};"
                " choose with --input-factor those of the text that moses.ini has as input-factor of this table"
            )
            raise FormatError(path, problem, line=1)

    def _has_rule(self, field: bytes) -> bool:
        return self._text.has_rule(rule_symbols(field))

    def occurs(self, path: str, number: int, source: bytes) -> bool:
        """Whether the source of that line does; FormatError for one that is no rule in a table of rules."""
        try:
            return self._has(source)
        except ValueError as error:
            raise FormatError(path, str(error), line=number) from error


def _words_of_rule(path: str, number: int, source: bytes) -> bytes:
    try:
        return rule_words(source)
    except ValueError as error:
        raise FormatError(path, str(error), line=number) from error


def _factors(texts: Sequence[bytes]) -> int | None:
    """How many factors the words have; 1 where they do not agree, None where there are too few to tell."""
    if sum(len(split_tokens(text)) for text in texts) < FEWEST_WORDS:
        return None
    return factors_of(next(text for text in texts if split_tokens(text))) if look_factored(texts) else 1


def read_source_text(paths: Sequence[str], factors: Sequence[int] | None) -> SourceText:
    """The lines of the files, their words with these of their factors alone; None for words as they are.

    Raises FormatError for a word without one of the factors.
    """
    return SourceText(line for path in paths for line in _lines(path, factors))


def _lines(path: str, factors: Sequence[int] | None) -> Iterator[bytes]:
    for number, line in enumerate(read_lines(path), start=1):
        words = line.removesuffix(b"\r")
        try:
            yield words if factors is None else pick_factors(words, factors)
        except ValueError as error:
            raise FormatError(path, str(error), line=number) from error
