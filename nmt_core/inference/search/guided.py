"""A guide in ids: the translations that it allows, word by word, and the scores that they can have.

The total of a hypothesis is log p of its words and the guide's bound, the score of the best text that begins with them.
Both only fall. Words that the model reads as one (``<unk>``) are different words of a guide.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from nmt_core.base.interfaces import Guide
from nmt_core.inference.search.constraints import Ending
from nmt_core.text.vocabulary import END_ID


class Prefix(NamedTuple):
    """A hypothesis as its guide knows it: the id written last, and ids of the word that are still to be written."""

    word: int
    reached: Any
    bound: float
    rest: tuple[int, ...] = ()


class GuideInIds(NamedTuple):
    """A guide in ids of the target vocabulary, of which a word may have several."""

    guide: Guide
    ids_of: Callable[[str], Sequence[int]]

    @property
    def beginning(self) -> Prefix:
        """Before the first word."""
        return Prefix(END_ID, self.guide.beginning, 0.0)

    def follow(self, prefix: Prefix) -> list[Prefix]:
        """All ways on, those to the end with ``END_ID``."""
        if prefix.rest:
            return [prefix._replace(word=prefix.rest[0], rest=prefix.rest[1:])]
        found = []
        for word, reached, bound in self.guide.follow(prefix.reached):
            first, *rest = (END_ID,) if word is None else self.ids_of(word)
            found.append(Prefix(first, reached, bound, tuple(rest)))
        return found

    def ending(self, prefix: Prefix) -> Ending:
        """What the guide adds to the score of a finished hypothesis."""
        return Ending(prefix.bound, reached=prefix.reached)
