"""What a feature is: a maker of columns for n-best lists, many sentences at a time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

from nmt_core.base.interfaces import SentencePair


class Candidates(NamedTuple):
    """A source sentence and hypotheses for it, as tokenised text; a hypothesis may be empty.

    ``totals`` are the scores the system gave them, one per hypothesis, None where the list has none; ``columns`` are
    the features that the list has already, a mapping per hypothesis; ``phrases`` are the phrase pairs each was
    made of, for features with a true ``reads_phrases``.
    """

    source: str
    hypotheses: Sequence[str]
    totals: Sequence[float] | None = None
    columns: Sequence[Mapping[str, tuple[float, ...]]] | None = None
    phrases: Sequence[Sequence[SentencePair]] | None = None


class Feature(Protocol):
    """One or more columns of an n-best list.

    Log-probabilities are natural logarithms, higher is better; a count or a ratio is given as it is, and
    its weight finds its sign when it is tuned.
    """

    @property
    def names(self) -> tuple[str, ...]:
        """Labels of the columns: letters and digits, beginning with a letter."""
        ...

    @property
    def signature(self) -> str:
        """What the numbers depend on, in one line; see ``smt_bridge.metadata``."""
        ...

    def compute(self, groups: Sequence[Candidates]) -> list[list[tuple[float, ...]]]:
        """One list per group, in it one tuple per hypothesis, in it one number per name."""
        ...


def reads_phrases(feature: Feature) -> bool:
    """Whether a feature needs ``Candidates.phrases``, which not every list has; those of other packages may not say."""
    return bool(getattr(feature, "reads_phrases", False))
