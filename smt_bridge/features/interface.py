"""What a feature is: a maker of columns for n-best lists, many sentences at a time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol


class Candidates(NamedTuple):
    """A source sentence and hypotheses for it, as tokenised text; a hypothesis may be empty."""

    source: str
    hypotheses: Sequence[str]


class Feature(Protocol):
    """One or more columns of an n-best list; scores are natural logarithms, higher is better."""

    @property
    def names(self) -> tuple[str, ...]:
        """Labels of the columns: letters and digits, beginning with a letter."""
        ...

    def compute(self, groups: Sequence[Candidates]) -> list[list[tuple[float, ...]]]:
        """One list per group, in it one tuple per hypothesis, in it one number per name."""
        ...
