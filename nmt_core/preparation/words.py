"""Words of a tokenised file and how often they occur."""

from __future__ import annotations

import collections
import functools
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeVar

from nmt_core.errors import InputError
from nmt_core.files import open_output, read_text_lines, write_lines
from nmt_core.text.vocabulary import split_words
from nmt_core.whole_numbers import whole_number

LONGEST = 100
"""Characters of what is treated as a word; what is longer is no word, and would cost the square of its length."""

_CACHED = 1 << 18
_Answer = TypeVar("_Answer")


def remembered(function: Callable[[str], _Answer]) -> Callable[[str], _Answer]:
    """A function of words that remembers its answers; memory is bounded, for words that are too long are not kept."""
    cached = functools.lru_cache(_CACHED)(function)
    return lambda word: cached(word) if len(word) <= LONGEST else function(word)


def in_lengths(word: str) -> list[str]:
    """The word, or parts of it of at most ``LONGEST`` characters."""
    return [word[start : start + LONGEST] for start in range(0, len(word), LONGEST)]


def count_words(paths: Sequence[str]) -> collections.Counter[str]:
    """The words of all files together."""
    counts: collections.Counter[str] = collections.Counter()
    for path in paths:
        for line in read_text_lines(path):
            counts.update(split_words(line))
    return counts


def by_frequency(counts: dict[str, int]) -> list[tuple[str, int]]:
    """Frequent words first, words of the same frequency in the order of their characters."""
    return sorted(counts.items(), key=lambda item: (-item[1], item[0]))


def write_counts(path: str, counts: Iterable[tuple[str, int]]) -> None:
    """A word, a tab and its count on each line."""
    with open_output(path) as stream:
        write_lines(stream, [f"{word}\t{count}" for word, count in counts])


def read_counts(path: str) -> Iterator[tuple[str, int]]:
    """The words and counts of such a file. Raises InputError with the line that is none."""
    for number, line in enumerate(read_text_lines(path), start=1):
        word, tab, count = line.partition("\t")
        times = whole_number(count)
        if not (word and tab) or times is None:
            raise InputError(path, "expected a word, a tab and a count", line=number)
        yield word, times


def commonest_forms(counts: dict[str, int]) -> dict[str, tuple[str, int]]:
    """For each word in lower case: its most frequent form, and how often it occurs in all forms."""
    forms: dict[str, tuple[str, int]] = {}
    for word, count in by_frequency(counts):
        form, total = forms.get(word.lower(), (word, 0))
        forms[word.lower()] = (form, total + count)
    return forms
