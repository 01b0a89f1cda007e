"""The source phrases that targets are generated for: those of a phrase table, or the n-grams of a text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice, pairwise
from typing import NamedTuple, TypeVar

from nmt_core.base.words import MOST_WORDS, check_words
from nmt_core.files import read_lines
from smt_bridge.moses_lines import look_factored, phrase_of, split_tokens
from smt_bridge.tables.table import read_windows, source_starts, split_window

SOURCES_AT_ONCE = 1000
_Item = TypeVar("_Item")


class Source(NamedTuple):
    """A source phrase, and the targets that a table has for it."""

    phrase: bytes
    targets: tuple[bytes, ...] = ()


class Sources(NamedTuple):
    """Consecutive sources of the input ``path``; ``first`` and ``lines`` say of which of its lines.

    ``places`` are the lines where each begins, () for those of a text, where an n-gram may stand on many.
    """

    first: int
    lines: int
    phrases: list[Source]
    path: str = ""
    places: Sequence[int] = ()


def sources_of_table(path: str, *, longest: int = MOST_WORDS) -> Iterator[Sources]:
    """The source phrases of a table with their targets.

    Raises FormatError, and InputError for a source of more than ``longest`` words.
    """
    before = b""
    for window in read_windows(path):
        columns = split_window(window)
        for number, source in enumerate(columns.sources, start=window.first):
            _check_words(source, longest, path=path, line=number)
        names = list(map(phrase_of, columns.sources))
        starts = source_starts(window, names, before=before)
        before = names[-1]
        groups = list(pairwise([*starts, len(names)]))
        for part in _in_parts(groups):
            begin, end = part[0][0], part[-1][1]
            phrases = [Source(names[first], tuple(map(phrase_of, columns.targets[first:last]))) for first, last in part]
            places = [window.first + first for first, _ in part]
            yield Sources(window.first + begin, end - begin, phrases, path, places)


def sources_of_text(
    path: str, *, most_words: int, missing_from: str | None, factored: bool = False, longest: int = MOST_WORDS
) -> Iterator[Sources]:
    """The distinct n-grams of a tokenised text but for sources of the other table, in the order of a sorted table.

    Words with a bar, which Moses cannot read, are left out, unless it is between factors, which all words then have.
    Raises InputError for a line of more than ``longest`` words.
    """
    found: set[bytes] = set()
    for number, line in enumerate(read_lines(path), start=1):
        _check_words(line, longest, path=path, line=number)
        words = split_tokens(line.removesuffix(b"\r"))
        for length in range(1, most_words + 1):
            found |= {b" ".join(words[place : place + length]) for place in range(len(words) - length + 1)}
    if missing_from is not None:
        for window in read_windows(missing_from):
            found.difference_update(map(phrase_of, split_window(window).sources))
    first = 1
    # as LC_ALL=C sort has the lines: what stands behind a phrase is a blank
    factored = factored or look_factored(found)
    readable = (phrase for phrase in found if is_writable(phrase.replace(b"|", b"") if factored else phrase))
    for part in _in_parts(sorted(readable, key=lambda phrase: phrase + b" |||")):
        yield Sources(first, len(part), [Source(phrase) for phrase in part], path)
        first += len(part)


def _check_words(text: bytes, most: int, *, path: str, line: int) -> None:
    if len(text) > 2 * most:  # more words and the blanks between them have more bytes
        check_words(text.decode("utf-8", "replace"), most, path=path, line=line)


def _in_parts(items: Iterable[_Item]) -> Iterator[list[_Item]]:
    items = iter(items)
    while part := list(islice(items, SOURCES_AT_ONCE)):
        yield part


def is_writable(phrase: bytes) -> bool:
    """Whether Moses reads what is written: no bars, and no label such as [X] at the end."""
    return b"|" not in phrase and not (phrase.endswith(b"]") and phrase.rsplit(b" ", 1)[-1].startswith(b"["))
