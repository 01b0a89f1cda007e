"""A sentence as a model reads it: the ids of its words, and the text they stand for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import overload

from nmt_core.text.vocabulary import split_words


class Sentence(Sequence[int]):
    """The ids of the words of a tokenised text, one for each word, without ``</s>``.

    It is the sequence of its ids. Two words that a vocabulary does not have are one id; what they are stays in
    ``text``, for which sentences that were made of ids alone must not be asked.

    >>> sentence = Sentence([5, 1], "the axolotl")
    >>> list(sentence), sentence.words
    ([5, 1], ('the', 'axolotl'))
    """

    __slots__ = ("_text", "ids")

    def __init__(self, ids: Sequence[int], text: str | None = None) -> None:
        self.ids, self._text = ids, text

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
        """The tokenised text."""
        assert self._text is not None, "the text of this sentence was not kept"
        return self._text

    @property
    def words(self) -> tuple[str, ...]:
        """The words of the text, as many as there are ids."""
        return tuple(split_words(self.text))
