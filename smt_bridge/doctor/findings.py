"""What the doctor says, one line for each finding, with its remedy; what may be wrong with texts and their words."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Literal, NamedTuple

from nmt_core.base.messages import counted
from nmt_core.base.words import unescape
from nmt_core.files import read_lines, read_text_lines
from nmt_core.text.unknown_share import MORE
from nmt_core.text.vocabulary import Vocabulary
from smt_bridge.model_checks import FEWER
from smt_bridge.nbest.checks import MANY_GLUED, share_of_glued

Level = Literal["error", "warning", "note"]


class Finding(NamedTuple):
    """``place`` is a file, perhaps with a line; ``remedy`` says what to do."""

    level: Level
    place: str
    problem: str
    remedy: str

    def __str__(self) -> str:
        return f"{self.level}: {self.place}: {self.problem}; {self.remedy}"


def error(place: str, problem: str, remedy: str) -> Finding:
    """Something that stops a program or makes its output wrong."""
    return Finding("error", place, problem, remedy)


def warning(place: str, problem: str, remedy: str) -> Finding:
    """Something that costs quality or time."""
    return Finding("warning", place, problem, remedy)


def note(place: str, problem: str, remedy: str) -> Finding:
    """Nothing is wrong, but something could not be looked into."""
    return Finding("note", place, problem, remedy)


_ESCAPED = re.compile(r"&(?:apos|quot|amp|lt|gt|#124|#91|#93);")
_POOR = 0.15  # share of unknown words from which something is wrong


class Words(NamedTuple):
    """The words of one side of a file and how often they were seen; ``place`` is for findings."""

    place: str
    counts: Counter[str]

    @property
    def total(self) -> int:
        """Running words."""
        return self.counts.total()

    def unknown(self, vocabulary: Vocabulary | frozenset[str]) -> float:
        """Share of the running words outside ``vocabulary``."""
        return sum(count for word, count in self.counts.items() if word not in vocabulary) / max(self.total, 1)


def words_of(place: str, texts: Iterable[str]) -> Words:
    """Count the words of texts."""
    counts: Counter[str] = Counter()
    for text in texts:
        counts.update(word for word in text.split(" ") if word)
    return Words(place, counts)


def words_of_file(path: str, *, most: int) -> Words:
    """Count the words of the first lines of a text file."""
    lines = islice(read_text_lines(path, errors="replace"), most or None)
    return words_of(path, (line.replace("\t", " ") for line in lines))


def examine_text(path: str, *, most: int, tokenised: bool) -> Iterator[Finding]:
    """Carriage returns, byte order marks, bytes that are not UTF-8, blank lines and untokenised text."""
    returns = broken = blank = first_blank = 0
    for number, line in enumerate(islice(read_lines(path, as_it_is=True), most or None), start=1):
        if number == 1 and line.startswith(b"\xef\xbb\xbf"):
            yield warning(
                f"{path}:1", "begins with a byte order mark", "remove it: to Moses it is a part of the first word"
            )
        returns += line.endswith(b"\r")
        try:
            line.decode()
        except UnicodeDecodeError:
            broken += 1
        if not line.strip():
            blank, first_blank = blank + 1, first_blank or number
    if returns:
        yield warning(
            path, f"{counted(returns, 'line ends', 'lines end')} in a carriage return", "convert it (sed 's/\\r$//')"
        )
    if broken:
        yield warning(path, f"{counted(broken, 'line is', 'lines are')} not UTF-8", "convert it with iconv")
    if blank:
        yield warning(
            f"{path}:{first_blank}", f"{counted(blank, 'line is', 'lines are')} blank", "make sure that this is meant"
        )
    if tokenised and share_of_glued(islice(read_text_lines(path, errors="replace"), most or None)) > MANY_GLUED:
        yield warning(path, "punctuation is glued to words: it is not tokenised", "run Moses' tokenizer.perl on it")


def examine_escapes(first: Words, second: Words) -> Iterator[Finding]:
    """Whether one of the two has Moses' escapes and the other does not, though it has what they stand for."""
    for one, other in ((first, second), (second, first)):
        escaped = {word for word in one.counts if _ESCAPED.search(word)}
        bare = {unescape(word) for word in escaped}
        if escaped and not any(_ESCAPED.search(word) for word in other.counts) and bare & other.counts.keys():
            example = min(word for word in escaped if unescape(word) in other.counts)
            yield warning(
                one.place,
                f"has escapes such as {example} where {other.place} has {unescape(example)}",
                "escape both alike (tokenizer.perl, or its -no-escape; `rescore-table --unescape`)",
            )


def read_vocabulary(folder: str, side: str) -> Vocabulary | None:
    """The words of a model folder's side, or None where there is no such file. Raises ModelError for other files."""
    path = os.path.join(folder, f"{side}.vocab")
    return Vocabulary.load(path) if os.path.isfile(path) else None


def examine_coverage(words: Words, vocabulary: Vocabulary, *, other: Vocabulary, model: str) -> Iterator[Finding]:
    """How many words the model does not know, and whether its direction, case or escapes are why.

    ``other`` is the vocabulary of its other side.
    """
    unknown = words.unknown(vocabulary)
    if unknown < max(_POOR, vocabulary.unknown_share + MORE) or not words.total:
        return
    problem = f"{unknown:.0%} of the words are unknown to {model}"
    if words.unknown(other) < FEWER * unknown:
        yield warning(words.place, problem, "it is a model of the other direction: give one of this")
        return
    changes = {
        "is it cased while the model was trained on lower-cased text? lower-case it": str.lower,
        "is it escaped while the model's corpus was not? use `--unescape`, or unescape it": unescape,
    }
    for remedy, change in changes.items():
        changed = words_of(words.place, (change(word) for word in words.counts.elements()))
        if changed.unknown(vocabulary) < 0.6 * unknown:
            yield warning(words.place, problem, remedy)
            return
    yield warning(words.place, problem, "is it tokenised like the model's corpus, and of the model's language?")


_LEAST = 20  # words that begin sentences, from which a share says something
_CASED = 0.05  # share of capitals among all occurrences of these words from which a text is cased
_MANY_FEWER = 1 / 5  # of that share, that a text has which is not
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
    if more > _CASED and fewer < _MANY_FEWER * more:
        problem = f"{fewer:.1%} of the words that may begin sentences have capitals, against {more:.1%} in {high}"
        yield warning(low, problem, _REMEDY)


def examine_case_of_model(words: Words, begin: Iterable[str], vocabulary: Vocabulary, model: str) -> Iterator[Finding]:
    """The same of a text and the vocabulary of a model, which has no counts."""
    common = [word for word in begin if words.counts[word] and word in vocabulary]
    if len(common) < _LEAST:
        return
    known = sum(_capital(word) in vocabulary for word in common) / len(common)
    share = _capitals(words, common)
    if (share > _CASED and known < _STRANGE) or (share < _MANY_FEWER * _CASED and known > _KNOWN):
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
