"""Truecasing: words that begin sentences are written as they mostly are elsewhere, and capitals come back.

A model that ``nmt-core prepare`` learned holds words and counts, one of Moses' ``train-truecaser.perl`` all forms of a
word with their counts: what a file holds says which of the two rules applies.
"""

from __future__ import annotations

import collections
import re
from collections.abc import Iterator, Mapping, Sequence, Set

from nmt_core.base.errors import InputError
from nmt_core.base.words import split_words
from nmt_core.config import Config
from nmt_core.files import read_text_lines
from nmt_core.preparation.steps import LineStep, ModelFile, Side
from nmt_core.preparation.words import commonest_forms, read_counts, write_counts
from nmt_core.text.vocabulary import by_frequency

_ENDS = frozenset(".!?")


class TruecasingConfig(Config):
    """``truecasing: {}`` turns it on for all sides."""

    sides: tuple[Side, ...] | None = None


class Truecasing:
    """A word that begins a sentence is written as it mostly is elsewhere: ``forms`` has that form by lower case.

    Learned from the words that begin no sentence; a word that only ever begins one stays as it is. Where sentences
    begin this is Moses' ``truecase.perl``. Words elsewhere are never changed (the script writes those it never saw
    so in their usual form: *GI* becomes *gi*), so that a capital at the beginning of each sentence undoes it; and it
    is some 15 times as fast as the port in sacremoses.

    >>> step = Truecasing({"the": "the", "paris": "Paris"})
    >>> step.apply("The man saw it . Paris too .")
    'the man saw it . Paris too .'
    >>> step.undo("the man saw it . paris too .")
    'The man saw it . Paris too .'
    """

    def __init__(self, forms: Mapping[str, str]) -> None:
        self._forms = forms

    @classmethod
    def open(cls, model: ModelFile) -> Truecasing:
        """The usual forms in a file."""
        return cls({form.lower(): form for form, _ in read_counts(model)})

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


_MOSES_ENDS = frozenset(".:?!")
_MOSES_DELAYS = frozenset(["(", "[", '"', "'", "&quot;", "&apos;", "&#91;", "&#93;"])
_MOSES_LINE = re.compile(r"\S+ \([0-9.e+-]+/[0-9.e+-]+\)(?: \S+ \([0-9.e+-]+\))*")


class MosesTruecasing:
    """Moses' ``truecase.perl`` and ``detruecase.perl``, for text without factors and markup.

    ``best`` has the most frequent form of a word by its lower case, ``known`` all forms. A word that begins a sentence
    takes its best form; elsewhere a known form stays, and any other takes the best one.

    >>> step = MosesTruecasing({"the": "the", "paris": "Paris"}, {"the", "The", "Paris"})
    >>> step.apply("The man saw The PARIS : Paris &apos; s")
    'the man saw The Paris : Paris &apos; s'
    >>> step.undo("the man : &quot; who ?")
    'The man : &quot; Who ?'
    """

    def __init__(self, best: Mapping[str, str], known: Set[str]) -> None:
        self.best, self._known = best, known

    @classmethod
    def open(cls, model: ModelFile) -> MosesTruecasing:
        """A model of ``train-truecaser.perl``. Raises InputError with the line that is of none."""
        best: dict[str, str] = {}
        known: set[str] = set()
        for number, line in enumerate(model.lines(), start=1):
            if not _MOSES_LINE.fullmatch(line):
                expected = "a line of train-truecaser.perl, such as 'the (10/12) The (2)'"
                raise InputError(model.path, f"expected {expected}", line=number)
            forms = line.split(" ")[::2]
            best[forms[0].lower()] = forms[0]
            known.update(forms)
        return cls(best, known)

    def apply(self, line: str) -> str:
        """As ``truecase.perl``."""
        words = split_words(line)
        starts = set(_moses_starts(words))
        return " ".join(
            word if word in self._known and place not in starts else self.best.get(word.lower(), word)
            for place, word in enumerate(words)
        )

    def undo(self, line: str) -> str:
        """As ``detruecase.perl``."""
        words = split_words(line)
        for place in _moses_starts(words):
            words[place] = words[place][:1].upper() + words[place][1:]
        return " ".join(words)


def _moses_starts(words: Sequence[str]) -> Iterator[int]:
    """Places where a sentence begins or may still begin, as behind a quotation mark."""
    begins = True
    for place, word in enumerate(words):
        if begins:
            yield place
        begins = word in _MOSES_ENDS or (begins and word in _MOSES_DELAYS)


def open_truecasing(model: ModelFile) -> LineStep:
    """The step of either kind of model. Raises InputError for a file that is none."""
    first = next(model.lines(), "")
    return Truecasing.open(model) if "\t" in first or not first else MosesTruecasing.open(model)
