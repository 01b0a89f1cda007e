"""Words with factors, as Moses writes them (Koehn and Hoang 2007): ``Haus|NN|haus`` is a word, its tag and its lemma.

The first factor is the word. Models that read factors say how many they read beside it; a word of a text for them has
exactly as many, and none is empty.

>>> split_factors("das|ART Haus|NN", 1)
[['das', 'Haus'], ['ART', 'NN']]
>>> factors_problem("das|ART Haus", 1)
"the word 'Haus' has 1 factor; the model reads 2, written word|factor"
"""

from __future__ import annotations

from nmt_core.errors import ConfigError, InputError
from nmt_core.messages import counted

SEPARATOR = "|"
MOST_FACTORS = 8  # beside the word


def split_factors(text: str, count: int) -> list[list[str]]:
    """The words, and ``count`` further lists of as many factors. Raises ConfigError for a word with others."""
    problem = factors_problem(text, count)
    if problem is not None:
        raise ConfigError(problem)
    if not count:
        return [_words(text)]
    parts = [word.split(SEPARATOR) for word in _words(text)]
    return [[word[place] for word in parts] for place in range(count + 1)]


def without_factors(words: list[str]) -> list[str]:
    """The first factor of each word."""
    return [word.partition(SEPARATOR)[0] for word in words]


def factors_read(signature: str) -> int:
    """How many factors a scorer with this signature reads beside each source word.

    >>> factors_read("nmt:rnnsearch|model:0a|factors:2|log:e"), factors_read("nmt:rnnsearch|model:0a")
    (2, 0)
    """
    return next((int(one.partition(":")[2]) for one in signature.split("|") if one.startswith("factors:")), 0)


def check_factors(text: str, count: int, *, path: str, line: int) -> None:
    """Raises InputError for line ``line`` of the file ``path`` where its words do not have so many factors."""
    problem = factors_problem(text, count)
    if problem is not None:
        raise InputError(path, problem, line=line)


def factors_problem(text: str, count: int) -> str | None:
    """What is wrong with a text whose words are to have ``count`` factors beside the word; None if nothing."""
    for word in _words(text) if count else ():
        parts = word.split(SEPARATOR)
        if len(parts) != count + 1:
            expected = SEPARATOR.join(["word", *(["factor"] * count)])
            factors = counted(len(parts), "factor")
            return f"the word {word[:60]!r} has {factors}; the model reads {count + 1}, written {expected}"
        if not all(parts):
            return f"the word {word[:60]!r} has an empty factor"
    return None


def _words(text: str) -> list[str]:
    """As ``nmt_core.text.vocabulary`` has them: cut at spaces and tabs only."""
    return [word for word in text.replace("\t", " ").split(" ") if word]
