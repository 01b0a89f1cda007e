"""The fields of a Moses line: bytes between ``|||``, tokens between spaces and tabs.

Nothing else separates: a no-break space, a lone carriage return or a Unicode line separator is part
of its token, and bytes that are not UTF-8 are legal. The separator is the three characters, with or
without blanks around them, wherever they stand.

>>> b"das Haus ||| the house ||| 0.5 0.25 ||| 0-0 1-1".split(SEPARATOR)
[b'das Haus ', b' the house ', b' 0.5 0.25 ', b' 0-0 1-1']
>>> text_of(b" the  house ")
'the house'
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from nmt_core.base.errors import ConfigError

SEPARATOR = b"|||"
BLANKS = b" \t"


def split_tokens(field: bytes) -> list[bytes]:
    """The tokens of a field."""
    return [token for token in field.replace(b"\t", b" ").split(b" ") if token]


def has_wide_blanks(field: bytes) -> bool:
    """Whether several blanks, or a tab, stand between two words."""
    field = field.strip(BLANKS)
    return b"  " in field or b"\t" in field


def phrase_of(field: bytes) -> bytes:
    """A phrase as Moses compares it: words with single spaces between."""
    if b"  " in field or b"\t" in field:
        return b" ".join(split_tokens(field))
    return field.strip(b" ")


def text_of(field: bytes) -> str:
    """A phrase as a model reads it: the same, with bytes that are not UTF-8 replaced."""
    return phrase_of(field).decode("utf-8", "replace")


_BAR = b"|"
FEWEST_WORDS = 3  # before the check for factors counts
LINES_FOR_FACTORS = 500  # lines of a file, from its first, by which factors are recognised


class Factors(NamedTuple):
    """Which factor is the word: of the source and of the target, counted from 0."""

    source: int
    target: int


def parse_factors(option: str) -> Factors:
    """``N``, or ``SOURCE,TARGET``; raises ConfigError for anything else.

    >>> parse_factors("0"), parse_factors("1,0")
    (Factors(source=0, target=0), Factors(source=1, target=0))
    """
    numbers = option.split(",")
    if len(numbers) > 2 or not all(number.isascii() and number.isdigit() and len(number) < 3 for number in numbers):
        raise ConfigError(f"--factor must be a number from 0, or SOURCE,TARGET such as 1,0, not '{option}'")
    return Factors(int(numbers[0]), int(numbers[-1]))


def pick_factor(words: bytes, factor: int) -> bytes:
    """That factor of every word, single blanks between; raises ValueError, saying which, for a word without it."""
    found = []
    for word in split_tokens(words):
        parts = word.split(_BAR, factor + 1)
        if len(parts) <= factor:
            shown = word[:40].decode("utf-8", "replace")
            raise ValueError(f"the word '{shown}' has no factor {factor} (counted from 0)")
        found.append(parts[factor])
    return b" ".join(found)


def factors_of(words: bytes) -> int:
    """How many factors each word has; 0 where they do not agree, and for no words."""
    counts = {word.count(_BAR) + 1 if all(word.split(_BAR)) else 0 for word in split_tokens(words)}
    return counts.pop() if len(counts) == 1 else 0


def look_factored(texts: Iterable[bytes]) -> bool:
    """Whether every text that has words has several factors, and there are words enough to believe it."""
    words = 0
    for text in texts:
        tokens = split_tokens(text)
        if tokens and factors_of(text) < 2:
            return False
        words += len(tokens)
    return words >= FEWEST_WORDS
