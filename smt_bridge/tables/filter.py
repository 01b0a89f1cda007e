"""The work of `smt-bridge filter-table`: the lines of a table that a decoder can use for a given text.

As Moses' ``filter-model-given-input.pl``, for phrases and rules of any length, and for every table whose lines begin
with a source phrase: phrase tables, reordering tables, tables of rules. Lines stay byte for byte and in their order.

A phrase occurs where its words stand side by side in a line of the text. A rule occurs where its words do, with one
word or more in the place of every non-terminal, whatever its labels (as ``filter-rule-table.py`` of Moses has it);
rules of a glue grammar, with ``<s>`` or ``</s>``, always do. An empty source, which Moses skips, does not.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby
from typing import NamedTuple

from nmt_core.base.errors import ConfigError
from nmt_core.base.messages import counted, say
from nmt_core.files import open_output, read_lines
from nmt_core.files.progress import progress_bar
from smt_bridge.errors import FormatError
from smt_bridge.metadata import find_metadata, new_metadata, write_metadata
from smt_bridge.moses_lines import FEWEST_WORDS, SEPARATOR, factors_of, look_factored, phrase_of, split_tokens
from smt_bridge.tables.lines import LOOKED_AT, SENTENCE_ENDS, are_rules, rule_symbols, rule_words
from smt_bridge.tables.table import table_blocks

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
            self._has = lambda field: self._text.has_rule(rule_symbols(field))
            sources = [_words_of_rule(path, number, source) for number, source in enumerate(sources, start=1)]
        of_sources, of_text = _factors(sources), _factors(self._text.lines[:LOOKED_AT])
        if of_sources is not None and of_text is not None and of_sources != of_text:
            problem = (
                f"the words of the sources have {counted(of_sources, 'factor')} and the words of the text {of_text};"
                " give the text with the factors that moses.ini has as input-factor of this table"
            )
            raise FormatError(path, problem, line=1)

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


NAME = "filter-table"
_EXPECTED = "expected a table of Moses, `source ||| ...`"


class FilteredBlock(NamedTuple):
    r"""The kept lines of a part of a table, each ending in ``\n``, their number, and how many lines the part had."""

    content: bytes
    kept: int
    lines: int


def filter_by_sources(path: str, sources: SourceFilter) -> Iterator[FilteredBlock]:
    """Filter a table of any kind and order by what ``sources`` has, in constant memory.

    Raises FormatError, naming the line, for one without fields, and for what is no rule in a table of rules.
    """
    seen, before, has = 0, None, False
    for block in _with_beginning(table_blocks(path)):
        lines = block.removesuffix(b"\n").split(b"\n")
        if not seen:
            sources.prepare(path, lines[:LOOKED_AT])
        kept = []
        for number, line in enumerate(lines, start=seen + 1):
            source, bars, _ = line.partition(SEPARATOR)
            if not bars:
                raise FormatError(path, f"has no |||; {_EXPECTED}", line=number)
            if source != before:
                before, has = source, sources.occurs(path, number, source)
            if has:
                kept.append(line)
        seen += len(lines)
        yield FilteredBlock(b"\n".join([*kept, b""]), len(kept), len(lines))
    if not seen:
        raise FormatError(path, f"the file is empty; {_EXPECTED}")


def _with_beginning(blocks: Iterator[bytes]) -> Iterator[bytes]:
    """The same blocks, the first of which has all lines by which the kind of table is recognised."""
    waiting, lines = [], 0
    for block in blocks:
        waiting.append(block)
        lines += block.count(b"\n")
        if lines >= LOOKED_AT:
            break
    if waiting:
        yield b"".join(waiting)
    yield from blocks


def filter_table(args: argparse.Namespace) -> int:
    """Filter, write the metadata, say what went."""
    metadata, has_metadata = find_metadata(args.input), new_metadata(args.output) is not None
    text = SourceText(line.removesuffix(b"\r") for path in args.sources for line in read_lines(path))
    if not any(text.lines):
        raise ConfigError(f"--sources {args.sources[0]}: has no words, so that nothing of the table would be left")
    kept = lines = 0

    def finish() -> None:
        if has_metadata and metadata is not None:
            filtered = {"input": args.input, "sources": args.sources, "lines": lines, "kept": kept}
            before = metadata.filtered or []
            write_metadata(args.output, metadata.model_copy(update={"filtered": [*before, filtered]}))

    blocks = filter_by_sources(args.input, SourceFilter(text))
    with (
        progress_bar(NAME, " lines", path=args.input, quiet=args.quiet) as progress,
        open_output(args.output, on_complete=finish) as stream,
    ):
        for block in blocks:
            stream.write(block.content)
            kept, lines = kept + block.kept, lines + block.lines
            progress.update(block.lines)
    say(f"{NAME}: {kept:,} of {counted(lines, 'line')} kept; {lines - kept:,} not in --sources")
    if not kept:
        say(f"{NAME}: warning: no source occurs in the text: is it tokenised, cased and escaped like the table?")
    return 0
