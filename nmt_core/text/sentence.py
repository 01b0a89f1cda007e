"""A sentence as a model reads it: the ids of its words, and the text they stand for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import overload

from nmt_core.base.words import split_words, without_factors


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
