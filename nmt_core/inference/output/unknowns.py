"""What is written instead of ``<unk>``: the source word of most attention, or its entry in a lexicon.

Jean et al. (2015, section 4.1; heuristics 0, 1 and 2 of their code) and the Montréal system of WMT'15. The
choice is a rule by name:

    copy                the source word
    lexicon             its likeliest target word; the source word where the lexicon has none
    lexicon-lowercase   the same for words that begin in lower case; others (names) are copied

Numbers and punctuation, words without a letter, are copied by every rule.

>>> import numpy as np
>>> from nmt_core.text.lexicon import Candidate, Lexicon
>>> unknowns = UnknownReplacement("lexicon", Lexicon({"cats": (Candidate("chats", 0.9),)}))
>>> unknowns.replace(["deux", "<unk>"], ["two", "cats"], np.array([[0.9, 0.1, 0], [0.1, 0.3, 0.6], [0, 0, 1]]))
(('deux', 'chats'), UnknownCounts(copied=0, translated=1))
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from nmt_core.base.errors import ConfigError
from nmt_core.base.interfaces import Aligns
from nmt_core.base.messages import counted
from nmt_core.base.words import unescape
from nmt_core.inference.output.alignment import hard_points
from nmt_core.inference.search.requests import Matrix
from nmt_core.text.lexicon import Lexicon
from nmt_core.text.vocabulary import UNKNOWN


@dataclass(frozen=True)
class UnknownCounts:
    """How many ``<unk>`` became a source word, and how many a word of the lexicon."""

    copied: int = 0
    translated: int = 0

    def __add__(self, other: UnknownCounts) -> UnknownCounts:
        return UnknownCounts(self.copied + other.copied, self.translated + other.translated)

    def __str__(self) -> str:
        total = self.copied + self.translated
        return (
            f"{counted(total, 'unknown word')} replaced: {self.copied:,} copied, {self.translated:,} from the lexicon"
        )


NOTHING_REPLACED = UnknownCounts()


def _has_letter(word: str) -> bool:
    return any(map(str.isalpha, word))


def _begins_in_lower_case(word: str) -> bool:
    return word[:1].islower()


RULES: dict[str, Callable[[str], bool]] = {
    "copy": lambda word: False,
    "lexicon": _has_letter,
    "lexicon-lowercase": _begins_in_lower_case,
}
"""By name, which source words (without Moses' escapes) are looked up in the lexicon."""


@dataclass(frozen=True)
class UnknownReplacement:
    """A rule, and the lexicon that it looks words up in. Raises ConfigError where they do not go together."""

    rule: str = "copy"
    lexicon: Lexicon | None = None

    def __post_init__(self) -> None:
        if self.rule not in RULES:
            raise ConfigError(f"{self.rule!r} is no rule for unknown words; there are {', '.join(RULES)}")
        if self.rule == "copy" and self.lexicon is not None:
            raise ConfigError("the rule copy uses no lexicon; choose lexicon or lexicon-lowercase, or give none")
        if self.rule != "copy" and self.lexicon is None:
            raise ConfigError(f"the rule {self.rule} needs a lexicon; make one with 'nmt-core lexicon'")

    def replace(
        self, words: Sequence[str], source_words: Sequence[str], attention: Matrix, aligns: Aligns = "written"
    ) -> tuple[tuple[str, ...], UnknownCounts]:
        """The target words without ``<unk>``, as many as before, and what was done.

        ``attention`` has ``</s>`` as last row and column, which no word is taken from; ``aligns`` says which words its
        rows are of.
        """
        if UNKNOWN not in words or not source_words:
            return tuple(words), NOTHING_REPLACED
        attended = {target: source_words[source] for source, target in hard_points(attention, aligns)}
        replaced, counts = list(words), NOTHING_REPLACED
        for place, word in enumerate(words):
            if word == UNKNOWN:
                replaced[place], count = self.word_for(attended[place])
                counts += count
        return tuple(replaced), counts

    def word_for(self, source_word: str) -> tuple[str, UnknownCounts]:
        """What is written for a source word."""
        if self.lexicon is not None and RULES[self.rule](unescape(source_word)):
            translation = self.lexicon.best(source_word)
            if translation is not None:
                return translation, UnknownCounts(translated=1)
        return source_word, UnknownCounts(copied=1)
