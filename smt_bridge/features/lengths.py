"""Cheap counts; the example to copy for a feature of your own."""

from __future__ import annotations

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
        return [[(float(sum(map(bool, text.split(" ")))),) for text in group.hypotheses] for group in groups]
