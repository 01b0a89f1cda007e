r"""Words and whole numbers of a text, factors and escapes, and how many words a line may have.

Words are what stands between spaces and tabs; other separators of Unicode are characters of a word.

Words with factors are written as Moses does (Koehn and Hoang 2007): ``Haus|NN|haus`` is a word, its tag and its lemma.
The first factor is the word. Models that read factors say how many they read beside it; a word of a text for them has
exactly as many, and none is empty.

The escapes are those of Moses' tokenizer: characters that mean something in its files, written as entities.
``tokenizer.perl`` writes them without ``-no-escape``; Moses itself never undoes them, so that ``&apos;`` and ``'`` are
different words, and what was made from one corpus does not fit another.

A limit on the words of a line makes a text without line ends a message, before it takes all memory or time.

>>> split_factors("das|ART Haus|NN", 1)
[['das', 'Haus'], ['ART', 'NN']]
>>> factors_problem("das|ART Haus", 1)
"the word 'Haus' has 1 factor; the model reads 2, written word|factor"
>>> unescape("d&apos; un &#124;")
"d' un |"
>>> escape("d'")
'd&apos;'
>>> count_words("a  b\tc ")
3
>>> whole_number("12"), whole_number("\u0663"), whole_number("-1"), whole_number("9" * 5000)
(12, None, None, None)
"""

from __future__ import annotations

import re

from nmt_core.base.errors import ConfigError, InputError
from nmt_core.base.messages import counted

MOST_WORDS = 1000
_DIGITS = 18


def whole_number(text: str) -> int | None:
    """The number from 0 that is written there in ASCII digits, not more than 64 bits hold; None for anything else."""
    return int(text) if text.isascii() and text.isdecimal() and len(text) <= _DIGITS else None


def utf8(text: str) -> str:
    """The text with U+FFFD for what was not UTF-8 in a file; messages hold UTF-8 only."""
    return text if text.isascii() else text.encode("utf-8", "surrogatepass").decode("utf-8", "replace")


def split_words(text: str) -> list[str]:
    """Cut tokenised text into words, at spaces and tabs only (a no-break space belongs to its word)."""
    return [word for word in text.replace("\t", " ").split(" ") if word]


def count_words(text: str) -> int:
    """How many words a text has, without a list of them where single spaces divide them, as in most texts."""
    if "  " in text or "\t" in text or not text or text != text.strip(" "):
        return len(split_words(text))
    return text.count(" ") + 1


def check_words(text: str, most: int, *, path: str, line: int) -> None:
    """Raise InputError for line ``line`` of the file ``path`` where it has more than ``most`` words."""
    if text.count(" ") + text.count("\t") < most:  # hardly any line is looked at twice
        return
    words = count_words(text)
    if words > most:
        problem = f"has {words:,} words; up to {most:,} are taken: divide the line, or allow more with --max-words"
        raise InputError(path, problem, line=line)


SEPARATOR = "|"
MOST_FACTORS = 8  # beside the word


def split_factors(text: str, count: int) -> list[list[str]]:
    """The words, and ``count`` further lists of as many factors. Raises ConfigError for a word with others."""
    problem = factors_problem(text, count)
    if problem is not None:
        raise ConfigError(problem)
    if not count:
        return [split_words(text)]
    parts = [word.split(SEPARATOR) for word in split_words(text)]
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
    for word in split_words(text) if count else ():
        parts = word.split(SEPARATOR)
        if len(parts) != count + 1:
            expected = SEPARATOR.join(["word", *(["factor"] * count)])
            factors = counted(len(parts), "factor")
            return f"the word {word[:60]!r} has {factors}; the model reads {count + 1}, written {expected}"
        if not all(parts):
            return f"the word {word[:60]!r} has an empty factor"
    return None


_WRITTEN = {
    "&": "&amp;",
    "|": "&#124;",
    "<": "&lt;",
    ">": "&gt;",
    "'": "&apos;",
    '"': "&quot;",
    "[": "&#91;",
    "]": "&#93;",
}
_READ = {entity: character for character, entity in _WRITTEN.items()} | {
    "&bar;": "|",  # these three were written before 2012
    "&bra;": "[",
    "&ket;": "]",
}
_SPECIAL = re.compile("[&|<>'\"\\[\\]]")
_MARKUP = re.compile(r"[<>|\[\]]")  # what Moses itself takes for markup, factors and non-terminals
_MARKUP_AMONG_FACTORS = re.compile(r"[<>\[\]]")
_ENTITY = re.compile("|".join(map(re.escape, _READ)))


def escape(text: str) -> str:
    """Text as ``tokenizer.perl`` writes it; text that is escaped already would be escaped twice."""
    return _SPECIAL.sub(lambda found: _WRITTEN[found.group()], text)


def unescape(text: str) -> str:
    """Undo the escapes."""
    return _ENTITY.sub(lambda found: _READ[found.group()], text) if "&" in text else text


def without_markup(text: str, *, factored: bool = False) -> str:
    """The characters that mean something to Moses' decoder escaped; ``factored`` words keep their bars."""
    return (_MARKUP_AMONG_FACTORS if factored else _MARKUP).sub(lambda found: _WRITTEN[found.group()], text)


def is_escaped(text: str) -> bool:
    """Whether there is an escape in it."""
    return "&" in text and _ENTITY.search(text) is not None


def needs_escape(text: str) -> bool:
    """Whether there is a character in it that the tokenizer would have escaped."""
    return _SPECIAL.search(_ENTITY.sub("", text)) is not None


def nbest_line(number: int, text: str, features: str, score: float) -> str:
    """A line of Moses' n-best lists; three bars inside the text, which would cut it, are escaped.

    >>> nbest_line(0, "a ||| b", "NMT0= -1.0", -0.5)
    '0 ||| a &#124;&#124;&#124; b ||| NMT0= -1.0 ||| -0.500000'
    """
    escaped = text.replace("|||", "&#124;&#124;&#124;")
    return f"{number} ||| {escaped} ||| {features} ||| {score:.6f}"
