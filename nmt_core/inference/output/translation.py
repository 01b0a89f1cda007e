"""What a translation of a line consists of."""

from __future__ import annotations

from dataclasses import dataclass, field

from nmt_core.base.interfaces import Aligns
from nmt_core.inference.output.unknowns import NOTHING_REPLACED, UnknownCounts, UnknownReplacement
from nmt_core.inference.search.hypothesis import Matrix
from nmt_core.text.vocabulary import END


@dataclass(frozen=True)
class Translation:
    """One translation of one line.

    ``text`` is tokenised, or raw when raw text was given. ``words`` are the target words as the
    model has them, but for ``<unk>`` where it is replaced; the numbers and ``attention`` are those of
    ``Hypothesis``, and ``aligns`` says which words the rows of ``attention`` are of. ``source_words`` are
    the tokenised words of the source. ``lm_log_prob`` is what an n-gram model said, if one was asked;
    ``unknown`` counts the words that were replaced. ``systems`` names those that listed it, where several made
    translations together; ``degraded`` says that one of them was away.
    """

    text: str
    words: tuple[str, ...]
    log_prob: float
    score: float
    word_log_probs: tuple[float, ...]
    source_words: tuple[str, ...]
    attention: Matrix | None = field(default=None, compare=False)
    lm_log_prob: float | None = None
    unknown: UnknownCounts = NOTHING_REPLACED
    aligns: Aligns = "written"
    systems: tuple[str, ...] = ()
    degraded: bool = False

    def with_unknown_replaced(self, unknowns: UnknownReplacement) -> tuple[str, UnknownCounts]:
        """The tokenised text with something else for every ``<unk>``, and what that was."""
        if self.attention is None:
            return self.text, self.unknown
        words, counts = unknowns.replace(self.words, self.source_words, self.attention, self.aligns)
        return " ".join(words), counts + self.unknown

    @property
    def source_labels(self) -> tuple[str, ...]:
        """What the columns of ``attention`` stand for."""
        return (*self.source_words, END)

    @property
    def target_labels(self) -> tuple[str, ...]:
        """What the rows of ``attention`` and ``word_log_probs`` stand for."""
        return (*self.words, END)
