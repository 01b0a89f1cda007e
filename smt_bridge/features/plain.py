"""Columns of the words alone: how long hypotheses are, and numbers and punctuation that should be on both sides.

``WordCount`` is the example to copy for a feature of your own.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence

from smt_bridge.features.base import Candidates
from smt_bridge.metadata import Signature


class WordCount:
    """The number of words of a hypothesis; its weight is what a word is worth."""

    def __init__(self, name: str = "WordCount0") -> None:
        self.names: tuple[str, ...] = (name,)
        self.signature = str(Signature.of("wordcount"))

    def compute(self, groups: Sequence[Candidates]) -> list[list[tuple[float, ...]]]:
        """Words are what stands between spaces."""
        return [[(float(_words(text)),) for text in group.hypotheses] for group in groups]


class LengthRatio:
    """Target words per source word, and how far that is from one: |log ratio|.

    The first rewards long hypotheses more where the source is short; the second is the same for twice and
    half as long. An empty side counts as one word.
    """

    def __init__(self) -> None:
        self.names: tuple[str, ...] = ("LengthRatio0", "LengthRatiolog0")
        self.signature = str(Signature.of("lengthratio"))

    def compute(self, groups: Sequence[Candidates]) -> list[list[tuple[float, ...]]]:
        """Both numbers of every hypothesis."""
        return [[_ratios(_words(text), _words(group.source)) for text in group.hypotheses] for group in groups]


def _words(text: str) -> int:
    return sum(map(bool, text.split(" ")))


def _ratios(target: int, source: int) -> tuple[float, float]:
    source = max(source, 1)
    return target / source, abs(math.log(max(target, 1) / source))


_NOT_DIGITS = re.compile(r"\D+")
_KINDS = {"...": "…", "&#91;": "[", "&#93;": "]", "。": ".", "！": "!", "？": "?"}  # noqa: RUF001 (of Chinese)
_MARKS = frozenset(".!?…:;()[]")  # commas, quotes and dashes follow each language's own rules


class Copied:
    """How many numbers, and how many marks of punctuation, one side has and the other has not.

    Numbers are words with a digit, compared by their digits (1,000 is 1.000 is 1 000 in one word).
    """

    def __init__(self) -> None:
        self.names: tuple[str, ...] = ("NumberMismatch0", "PunctuationMismatch0")
        self.signature = str(Signature.of("copied"))

    def compute(self, groups: Sequence[Candidates]) -> list[list[tuple[float, ...]]]:
        """Two counts per hypothesis."""
        return [_mismatches(group) for group in groups]


def _mismatches(group: Candidates) -> list[tuple[float, ...]]:
    numbers, marks = _numbers_and_marks(group.source)
    rows: list[tuple[float, ...]] = []
    for text in group.hypotheses:
        theirs = _numbers_and_marks(text)
        rows.append((_difference(numbers, theirs[0]), _difference(marks, theirs[1])))
    return rows


def _numbers_and_marks(text: str) -> tuple[Counter[str], Counter[str]]:
    words = [_KINDS.get(word, word) for word in text.split(" ")]
    digits = (_NOT_DIGITS.sub("", word) for word in words if not word.startswith("&#"))
    return Counter(number for number in digits if number), Counter(word for word in words if word in _MARKS)


def _difference(one: Counter[str], other: Counter[str]) -> float:
    return float(((one - other) + (other - one)).total()) if one != other else 0.0
