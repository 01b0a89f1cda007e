"""A line to translate, what its translation must have, and what is known of it, as text."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from nmt_core.interfaces import NgramAdvice
from nmt_core.text.vocabulary import split_words


@dataclass(frozen=True)
class PhraseConstraint:
    """Alternative target phrases of which the translation has one; see ``rules.Constraint`` for the rest.

    Phrases are tokenised text in the words of the model. A word that the model does not know stands where the model
    writes ``<unk>``.
    """

    phrases: tuple[str, ...]
    log_probs: tuple[float, ...] = ()
    required: bool = True

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
