"""A line to translate, what its translation must have, and what is known of it, as text."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from nmt_core.base.interfaces import NgramAdvice
from nmt_core.base.words import split_words


@dataclass(frozen=True)
class PhraseConstraint:
    """Alternative target phrases of which the translation has one; see ``rules.Constraint`` for the rest.

    Phrases are tokenised text in the words of the model. A word that the model does not know stands where the model
    writes ``<unk>``. Alternatives are kept in one order, whatever order they are given in: the likeliest first, of
    equals by their text.
    """

    phrases: tuple[str, ...]
    log_probs: tuple[float, ...] = ()
    required: bool = True

    def __post_init__(self) -> None:
        pairs = zip(self.log_probs or (0.0,) * len(self.phrases), self.phrases, strict=True)
        ordered = sorted(pairs, key=lambda one: (-one[0], one[1]))
        object.__setattr__(self, "phrases", tuple(phrase for _, phrase in ordered))
        object.__setattr__(self, "log_probs", tuple(value for value, _ in ordered) if self.log_probs else ())

    @property
    def words(self) -> tuple[tuple[str, ...], ...]:
        """The words of the phrases."""
        return tuple(tuple(split_words(phrase)) for phrase in self.phrases)


@dataclass(frozen=True)
class SourceLine:
    """Tokenised source text, with the words its translation begins with, phrases that it contains, and advice."""

    text: str
    prefix: str = ""
    constraints: tuple[PhraseConstraint, ...] = ()
    advice: NgramAdvice | None = field(default=None, compare=False)

    @property
    def prefix_words(self) -> tuple[str, ...]:
        """The words of the prefix."""
        return tuple(split_words(self.prefix))

    def surface(self, words: list[str], taken: Any) -> list[str]:
        """The words of a translation with those of prefix and constraints as they were given.

        ``taken`` are the ``Placed`` of its hypothesis. Only words unknown to the model differ.
        """
        words = [*self.prefix_words, *words[len(self.prefix_words) :]]
        for one in taken:
            phrase = self.constraints[one.constraint].words[one.phrase]
            words[one.first : one.first + one.length] = phrase
        return words
