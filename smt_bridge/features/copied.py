"""Numbers and punctuation that should be the same on both sides, whatever the languages."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from smt_bridge.features.interface import Candidates
from smt_bridge.signature import Signature

_NOT_DIGITS = re.compile(r"\D+")
_KINDS = {"...": "…", "&#91;": "[", "&#93;": "]", "。": ".", "！": "!", "？": "?"}  # noqa: RUF001 (of Chinese)
_MARKS = frozenset(".!?…:;()[]")  # commas, quotes and dashes follow each language's own rules


class Copied:
    """How many numbers, and how many marks of punctuation, one side has and the other has not.

    Numbers are words with a digit, compared by their digits (1,000 is 1.000 is 1 000 in one word).
    """

    def __init__(self, names: tuple[str, str] = ("NumberMismatch0", "PunctuationMismatch0")) -> None:
        self.names: tuple[str, ...] = names
        self.signature = str(Signature.of("copied"))

    def __repr__(self) -> str:
        return f"Copied({self.names})"

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
