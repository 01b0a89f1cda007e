"""Whether two files of a pipeline are cased alike: as written, truecased or lower-cased."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice

from nmt_core.files import read_text_lines
from nmt_core.text.vocabulary import Vocabulary
from smt_bridge.doctor.findings import Finding, Words, warning

_LEAST = 20  # words that begin sentences, from which a share says something
_CASED = 0.05  # share of capitals among all occurrences of these words from which a text is cased
_FEWER = 1 / 5  # of that share, that a text has which is not
_KNOWN, _STRANGE = 0.3, 0.1  # share of these words that a model knows with a capital: it is cased, or it is not
_REMEDY = "case both alike, by truecase.perl with the system's model, or in lower case"


def first_words(path: str, *, most: int) -> frozenset[str]:
    """The words that begin the first lines of a text, in lower case."""
    lines = islice(read_text_lines(path, errors="replace"), most or None)
    return frozenset(word for line in lines if (word := line.split(" ", 1)[0].lower()).isalpha())


def examine_case(first: Words, second: Words, begin: Iterable[str]) -> Iterator[Finding]:
    """Whether words that ``begin`` sentences have capitals in one of two files of a language, and none in the other.

    Names have capitals everywhere: only words that one of the two also has in lower case say how it is cased.
    """
    common = [word for word in begin if first.counts[word] or second.counts[word]]
    if len(common) < _LEAST or not (first.total and second.total):
        return
    (fewer, low), (more, high) = sorted((_capitals(words, common), words.place) for words in (first, second))
    if more > _CASED and fewer < _FEWER * more:
        problem = f"{fewer:.1%} of the words that may begin sentences have capitals, against {more:.1%} in {high}"
        yield warning(low, problem, _REMEDY)


def examine_case_of_model(words: Words, begin: Iterable[str], vocabulary: Vocabulary, model: str) -> Iterator[Finding]:
    """The same of a text and the vocabulary of a model, which has no counts."""
    common = [word for word in begin if words.counts[word] and word in vocabulary]
    if len(common) < _LEAST:
        return
    known = sum(_capital(word) in vocabulary for word in common) / len(common)
    share = _capitals(words, common)
    if (share > _CASED and known < _STRANGE) or (share < _FEWER * _CASED and known > _KNOWN):
        problem = (
            f"{share:.1%} of the words that may begin sentences have capitals; {model} knows {known:.0%} of these so"
        )
        yield warning(words.place, problem, _REMEDY)


def _capitals(words: Words, common: Iterable[str]) -> float:
    """The share of capitals among the occurrences of these words."""
    capitals = lower = 0
    for word in common:
        capitals, lower = capitals + words.counts[_capital(word)], lower + words.counts[word]
    return capitals / max(capitals + lower, 1)


def _capital(word: str) -> str:
    return word[:1].upper() + word[1:]
