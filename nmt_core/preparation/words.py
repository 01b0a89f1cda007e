"""The splitting of compounds, which learns from the frequencies of words, and files of words and counts."""

from __future__ import annotations

import functools
import itertools
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple, TypeVar

from pydantic import Field

from nmt_core.base.errors import InputError
from nmt_core.base.words import split_words, whole_number
from nmt_core.config import Config
from nmt_core.files import open_output, read_text_lines, write_lines
from nmt_core.preparation.steps import ModelFile, Side
from nmt_core.text.vocabulary import by_frequency, count_words

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


def write_counts(path: str, counts: Iterable[tuple[str, int]]) -> None:
    """A word, a tab and its count on each line."""
    with open_output(path) as stream:
        write_lines(stream, [f"{word}\t{count}" for word, count in counts])


def read_counts(model: ModelFile) -> Iterator[tuple[str, int]]:
    """The words and counts of such a file. Raises InputError with the line that is none."""
    for number, line in enumerate(model.lines(), start=1):
        word, tab, count = line.partition("\t")
        times = whole_number(count)
        if not (word and tab) or times is None:
            raise InputError(model.path, "expected a word, a tab and a count", line=number)
        yield word, times


def commonest_forms(counts: dict[str, int]) -> dict[str, tuple[str, int]]:
    """For each word in lower case: its most frequent form, and how often it occurs in all forms."""
    forms: dict[str, tuple[str, int]] = {}
    for word, count in by_frequency(counts):
        form, total = forms.get(word.lower(), (word, 0))
        forms[word.lower()] = (form, total + count)
    return forms


FILLERS = ("s", "es")
_MARKED = re.compile(r"(?<=\S) @(\+|[^\W\d_]+)@ (\S+)")


class CompoundsConfig(Config):
    """``sides`` are those in German unless named.

    ``minimum_length`` and ``minimum_count`` say what may be a part. With ``mark`` the join is kept as a
    word of its own (``@+@``, ``@s@``, ``@es@``) and can be undone exactly.
    """

    sides: tuple[Side, ...] | None = None
    minimum_length: int = Field(default=3, ge=1)
    minimum_count: int = Field(default=1, ge=1)
    fillers: tuple[str, ...] = FILLERS
    mark: bool = False


class _Way(NamedTuple):
    """Some parts of a word, the product of their frequencies and the parts with the filler behind each."""

    product: int
    parts: tuple[tuple[str, str], ...]


def best_split(
    word: str,
    counts: Mapping[str, int],
    *,
    minimum_length: int = 3,
    minimum_count: int = 1,
    fillers: Sequence[str] = FILLERS,
) -> list[tuple[str, str]]:
    """The parts of ``word`` (in lower case, as those of ``counts``), each with the filler behind it.

    Koehn and Knight, Empirical Methods for Compound Splitting (EACL 2003). A word is split into known words, with a
    filler (s, es) after any part but the last, if the geometric mean of the parts' frequencies is higher than that
    of every other way to split it, not splitting included. All ways are compared, in whole numbers. A word that is
    best left whole, or has no other way, is one part.

    >>> best_split("aktionsplan", {"aktionsplan": 852, "aktion": 960, "plan": 710})
    [('aktionsplan', '')]
    >>> best_split("aktionsplan", {"aktionsplan": 82, "aktion": 960, "plan": 710})
    [('aktion', 's'), ('plan', '')]
    """
    ways: list[dict[int, _Way]] = [{} for _ in range(len(word) + 1)]  # to each place, the best for a number of parts
    ways[0][0] = _Way(1, ())
    for start in range(len(word)):
        for stop in range(start + minimum_length, len(word) + 1) if ways[start] else ():
            count = counts.get(word[start:stop], 0)
            if count < minimum_count or stop - start == len(word):
                continue
            for filler in ("",) if stop == len(word) else ("", *fillers):
                ends = stop + len(filler) == len(word)  # a filler stands between parts only
                if word.startswith(filler, stop) and not (filler and ends):
                    _extend(ways[start], ways[stop + len(filler)], (word[start:stop], filler), count)
    best = _Way(counts.get(word, 0), ((word, ""),))
    for number, way in sorted(ways[-1].items()):
        if way.product ** len(best.parts) > best.product**number:
            best = way
    return list(best.parts)


def _extend(before: Mapping[int, _Way], after: dict[int, _Way], part: tuple[str, str], count: int) -> None:
    """Put the part behind every way of ``before``; ``after`` keeps the better ones."""
    for number, way in before.items():
        product = way.product * count
        if number + 1 not in after or product > after[number + 1].product:
            after[number + 1] = _Way(product, (*way.parts, part))


class Compounds:
    """``forms`` gives the usual form and the frequency of a word in lower case."""

    def __init__(self, config: CompoundsConfig, forms: Mapping[str, tuple[str, int]]) -> None:
        self._config = config
        self._forms = {word: form for word, (form, _) in forms.items()}
        self._counts = {word: count for word, (_, count) in forms.items()}
        self._split = remembered(self._split_word)

    @classmethod
    def open(cls, model: ModelFile, config: CompoundsConfig) -> Compounds:
        """The frequencies in a file."""
        return cls(config, {form.lower(): (form, count) for form, count in read_counts(model)})

    def apply(self, line: str) -> str:
        """Split every compound; parts are written in their usual form."""
        return " ".join(map(self._split, split_words(line)))

    def undo(self, line: str) -> str:
        """Join what is marked."""
        if not self._config.mark:
            return line
        return _MARKED.sub(_join, line)

    def _split_word(self, word: str) -> str:
        if not word.isalpha() or not 2 * self._config.minimum_length <= len(word) <= LONGEST:
            return word
        parts = best_split(
            word.lower(),
            self._counts,
            minimum_length=self._config.minimum_length,
            minimum_count=self._config.minimum_count,
            fillers=self._config.fillers,
        )
        if len(parts) == 1:
            return word
        return self._marked(word, parts) if self._config.mark else " ".join(self._forms[part] for part, _ in parts)

    def _marked(self, word: str, parts: Sequence[tuple[str, str]]) -> str:
        """Parts and marks, or the whole word where it would not come back as it was (capitals inside)."""
        text = word[: len(parts[0][0])]
        for (_, filler), (part, _) in itertools.pairwise(parts):
            text += f" @{filler or '+'}@ {self._forms[part]}"
        return text if self.undo(text) == word else word


def learn_compounds(path: str, output: str) -> None:
    """Write the frequencies of the words in ``path``."""
    counts = {word: count for word, count in count_words(read_text_lines(path)).items() if word.isalpha()}
    write_counts(output, by_frequency(dict(commonest_forms(counts).values())))


def _join(match: re.Match[str]) -> str:
    filler, part = match.groups()
    return ("" if filler == "+" else filler) + part.lower()
