"""How long hypotheses are; ``WordCount`` is the example to copy for a feature of your own."""

from __future__ import annotations

import math
from collections.abc import Sequence

from smt_bridge.features.interface import Candidates
from smt_bridge.signature import Signature


class WordCount:
    """The number of words of a hypothesis; its weight is what a word is worth."""

    def __init__(self, name: str = "WordCount0") -> None:
        self.names: tuple[str, ...] = (name,)
        self.signature = str(Signature.of("wordcount"))

    def __repr__(self) -> str:
        return f"WordCount({self.names[0]!r})"

    def compute(self, groups: Sequence[Candidates]) -> list[list[tuple[float, ...]]]:
        """Words are what stands between spaces."""
        return [[(float(_words(text)),) for text in group.hypotheses] for group in groups]


class LengthRatio:
    """Target words per source word, and how far that is from one: |log ratio|.

    The first rewards long hypotheses more where the source is short; the second is the same for twice and
    half as long. An empty side counts as one word.
    """

    def __init__(self, names: tuple[str, str] = ("LengthRatio0", "LengthRatiolog0")) -> None:
        self.names: tuple[str, ...] = names
        self.signature = str(Signature.of("lengthratio"))

    def __repr__(self) -> str:
        return f"LengthRatio({self.names})"

    def compute(self, groups: Sequence[Candidates]) -> list[list[tuple[float, ...]]]:
        """Both numbers of every hypothesis."""
        return [[_ratios(_words(text), _words(group.source)) for text in group.hypotheses] for group in groups]


def _words(text: str) -> int:
    return sum(map(bool, text.split(" ")))


def _ratios(target: int, source: int) -> tuple[float, float]:
    source = max(source, 1)
    return target / source, abs(math.log(max(target, 1) / source))
