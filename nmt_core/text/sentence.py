"""A sentence as a model reads it: the ids of its words, the text they stand for, and the order of its words.

A model that writes from right to left begins with the last word of the text; ``</s>`` is last in both orders. Text,
and all numbers that belong to its words, are in the order of the text wherever a user meets them: they are turned
where text becomes the ids that a model reads, and where a model's numbers become an answer.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator, Sequence
from typing import TypeVar, overload

import numpy as np
import numpy.typing as npt

from nmt_core.base.interfaces import Aligns
from nmt_core.base.words import split_words, without_factors

Item = TypeVar("Item")
Rows = TypeVar("Rows", tuple[tuple[float, ...], ...], npt.NDArray[np.float32] | npt.NDArray[np.float64])


class Sentence(Sequence[int]):
    """The ids of the words of a tokenised text, one for each word, without ``</s>``.

    It is the sequence of its ids. Two words that a vocabulary does not have are one id; what they are stays in
    ``text``, for which sentences that were made of ids alone must not be asked. For models that read factors beside
    the words, ``factors`` has the ids of each: as many lists as factors, each as long as the sentence.

    >>> sentence = Sentence([5, 1], "the axolotl")
    >>> list(sentence), sentence.words
    ([5, 1], ('the', 'axolotl'))
    """

    __slots__ = ("_text", "factors", "ids")

    def __init__(self, ids: Sequence[int], text: str | None = None, factors: Sequence[Sequence[int]] = ()) -> None:
        self.ids, self._text, self.factors = ids, text, factors

    def __repr__(self) -> str:
        return f"Sentence({self.ids!r}, {self._text!r})"

    def __len__(self) -> int:
        return len(self.ids)

    def __iter__(self) -> Iterator[int]:
        return iter(self.ids)

    @overload
    def __getitem__(self, place: int) -> int: ...
    @overload
    def __getitem__(self, place: slice) -> Sequence[int]: ...
    def __getitem__(self, place: int | slice) -> int | Sequence[int]:
        return self.ids[place]

    def count(self, value: int) -> int:
        """How often an id is in it."""
        return self.ids.count(value)

    @property
    def text(self) -> str:
        """The tokenised text, with the factors of its words where it has some."""
        assert self._text is not None, "the text of this sentence was not kept"
        return self._text

    @property
    def words(self) -> tuple[str, ...]:
        """The words of the text without their factors, as many as there are ids."""
        words = split_words(self.text)
        return tuple(without_factors(words) if self.factors else words)


def word_rows(attention: Rows, aligns: Aligns) -> Rows:
    """The rows of attention of each target word, without the row of the end, or of the beginning."""
    return attention[:-1] if aligns == "written" else attention[1:]


class TargetOrder(enum.StrEnum):
    """Stored with the model; old models have none and are left-to-right.

    Every method turns the order of the text into the model's, and the model's into that of the text.
    """

    LEFT_TO_RIGHT = "left-to-right"
    RIGHT_TO_LEFT = "right-to-left"

    def words(self, words: Sequence[Item]) -> Sequence[Item]:
        """A sequence with one item for each word."""
        return words[::-1] if self is TargetOrder.RIGHT_TO_LEFT else words

    def sentence(self, sentence: Sentence) -> Sentence:
        """A sentence with its text."""
        if self is TargetOrder.LEFT_TO_RIGHT:
            return sentence
        return Sentence(self.words(sentence.ids), " ".join(self.words(sentence.words)))

    def rows(self, rows: Sequence[Item]) -> Sequence[Item]:
        """A sequence with one item for each word, and one for the end, which stays last."""
        return [*rows[:-1][::-1], *rows[-1:]] if self is TargetOrder.RIGHT_TO_LEFT else rows

    def attention(self, rows: Sequence[Item], aligns: Aligns) -> Sequence[Item]:
        """Rows of attention: of each word, and of the end; or where rows are of words read, of the beginning first."""
        if aligns == "written" or self is TargetOrder.LEFT_TO_RIGHT:
            return self.rows(rows)
        return [*rows[:1], *rows[1:][::-1]]

    def place(self, first: int, *, length: int = 1, words: int) -> int:
        """The first position of a phrase of ``length`` words; ``first`` is its position in the other order."""
        return words - first - length if self is TargetOrder.RIGHT_TO_LEFT else first
