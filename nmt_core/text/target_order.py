"""The order in which a model reads and writes the words of a target sentence.

A model that writes from right to left begins with the last word of the text; ``</s>`` is last in both orders. Text,
and all numbers that belong to its words, are in the order of the text wherever a user meets them: they are turned
where text becomes the ids that a model reads, and where a model's numbers become an answer.

Every method turns the order of the text into the model's, and the model's into that of the text.
"""

from __future__ import annotations

import enum
from collections.abc import Sequence
from typing import TypeVar

from nmt_core.base.interfaces import Aligns
from nmt_core.text.sentence import Sentence

Item = TypeVar("Item")


class TargetOrder(enum.StrEnum):
    """Stored with the model; old models have none and are left-to-right."""

    LEFT_TO_RIGHT = "left-to-right"
    RIGHT_TO_LEFT = "right-to-left"

    def words(self, words: Sequence[Item]) -> Sequence[Item]:
        """What there is one of for each word."""
        return words[::-1] if self is TargetOrder.RIGHT_TO_LEFT else words

    def sentence(self, sentence: Sentence) -> Sentence:
        """A sentence with its text."""
        if self is TargetOrder.LEFT_TO_RIGHT:
            return sentence
        return Sentence(self.words(sentence.ids), " ".join(self.words(sentence.words)))

    def rows(self, rows: Sequence[Item]) -> Sequence[Item]:
        """What there is one of for each word and one for the end, which stays last."""
        return [*rows[:-1][::-1], *rows[-1:]] if self is TargetOrder.RIGHT_TO_LEFT else rows

    def attention(self, rows: Sequence[Item], aligns: Aligns) -> Sequence[Item]:
        """Rows of attention: of each word, and of the end; or where rows are of words read, of the beginning first."""
        if aligns == "written" or self is TargetOrder.LEFT_TO_RIGHT:
            return self.rows(rows)
        return [*rows[:1], *rows[1:][::-1]]

    def place(self, first: int, *, length: int = 1, words: int) -> int:
        """Where a word, or a phrase of ``length`` words, begins that begins at ``first`` of so many words."""
        return words - first - length if self is TargetOrder.RIGHT_TO_LEFT else first
