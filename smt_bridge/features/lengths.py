"""Columns of lengths; ``WordCount`` is the example to copy for a feature of your own."""

from __future__ import annotations

import math
from collections.abc import Sequence

from nmt_core.base.words import split_words
from smt_bridge.features.base import Candidates
from smt_bridge.metadata import signature_of


class WordCount:
    """The number of words of a hypothesis; its weight is what a word is worth."""

    def __init__(self) -> None:
        self.names: tuple[str, ...] = ("WordCount0",)
        self.signature = signature_of("wordcount")

    def compute(self, groups: Sequence[Candidates]) -> list[list[tuple[float, ...]]]:
        """Words are what stands between spaces."""
        return [[(float(len(split_words(text))),) for text in group.hypotheses] for group in groups]


class LengthRatio:
    """Target words per source word, and how far that is from one: |log ratio|.

    The first rewards long hypotheses more where the source is short; the second is the same for twice and
    half as long. An empty side counts as one word.
    """

    def __init__(self) -> None:
        self.names: tuple[str, ...] = ("LengthRatio0", "LengthRatiolog0")
        self.signature = signature_of("lengthratio")

    def compute(self, groups: Sequence[Candidates]) -> list[list[tuple[float, ...]]]:
        """Both numbers of every hypothesis."""
        return [[_ratios(text, group.source) for text in group.hypotheses] for group in groups]


def _ratios(target: str, source: str) -> tuple[float, float]:
    words, length = len(split_words(target)), max(len(split_words(source)), 1)
    return words / length, abs(math.log(max(words, 1) / length))
