"""Vocabularies of foreign models: files that give each word a number, and the words of a matrix in our order.

Ours have ``</s>`` at 0 and ``<unk>`` at 1. A foreign number is a row of the model's matrices. Rows that have no word,
or one that no tokenised text can have, stay, since they are in the normaliser, under a name of their own.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from nmt_core.base.errors import InputError
from nmt_core.base.messages import counted
from nmt_core.config import YamlProblem, parse_yaml
from nmt_core.files import read_text_lines
from nmt_core.files.reading import read_small
from nmt_core.text.vocabulary import LONGEST_WORD, MOST_WORDS, SPECIAL_WORDS, Vocabulary

_LINE = re.compile(r"(\"(?:[^\"\\]|\\.)*\"|'(?:[^']|'')*'|.*?[^ ])[ ]*:[ ]+([0-9]{1,9})[ ]*")
_SEPARATORS = re.compile(r"[ \t\r\n]")


class Rows(NamedTuple):
    """The words of a matrix, and for each the row of the foreign matrix."""

    vocabulary: Vocabulary
    rows: npt.NDArray[np.int64]


def read_words(path: str) -> dict[str, int]:
    """The words of a file and their numbers: JSON, YAML of one line a word, or one word a line.

    Raises InputError, with the line where there is one, for any other file.
    """
    readers: dict[str, Callable[[str], Any]] = {
        ".json": _read_json,
        ".yml": _read_yaml,
        ".yaml": _read_yaml,
        ".spm": _refuse_sentencepiece,
    }
    words = readers.get(os.path.splitext(path)[1].lower(), _read_list)(path)
    if not isinstance(words, dict) or not all(
        isinstance(word, str) and type(number) is int and 0 <= number < MOST_WORDS for word, number in words.items()
    ):
        raise InputError(path, f"expected words with whole numbers from 0 to {MOST_WORDS:,}")
    if len(words) < len(SPECIAL_WORDS):
        raise InputError(path, f"has {counted(len(words), 'word')}; is it the vocabulary of this model?")
    return words


def ordered(words: Mapping[str, int], size: int, *, end: int, unknown: int, path: str) -> Rows:
    """The vocabulary of a matrix of ``size`` rows in which these are the rows of the two special words.

    Words with numbers beyond the matrix are unknown words. Raises InputError where a special row is not there, or two
    words have one number.
    """
    if not (end < size and unknown < size and end != unknown):
        raise InputError(path, f"the model has {size:,} words; its end is {end} and its unknown word {unknown}")
    names: dict[int, str] = {}
    for word, number in words.items():
        if number < size and number not in (end, unknown) and names.setdefault(number, word) != word:
            raise InputError(path, f"the number {number} is that of {names[number][:40]!r} and of {word[:40]!r}")
    others = [number for number in range(size) if number not in (end, unknown)]
    free = _free_names(words)
    listed = [names[number] if _is_word(names.get(number)) else free(number) for number in others]
    return Rows(Vocabulary([*SPECIAL_WORDS, *listed]), np.array([end, unknown, *others], dtype=np.int64))


def _is_word(word: str | None) -> bool:
    """Whether a tokenised text can have it, and a vocabulary."""
    if not word or word in SPECIAL_WORDS or len(word) > LONGEST_WORD or _SEPARATORS.search(word):
        return False
    try:
        word.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:  # half of a character, which JSON can write
        return False
    return True


def _free_names(words: Mapping[str, int]) -> Callable[[int], str]:
    """A name for a row that has no word, which is no word of the vocabulary."""
    sign = "row"
    while any(word.startswith(f"<{sign}:") for word in words):
        sign += "_"
    return lambda number: f"<{sign}:{number}>"


def _read_json(path: str) -> Any:
    content = read_small(path, regular=True)
    try:
        return json.loads(content, object_pairs_hook=lambda pairs: _once(pairs, path))
    except json.JSONDecodeError as error:
        raise InputError(path, f"is not JSON ({error.msg})", line=error.lineno) from error
    except (ValueError, RecursionError) as error:
        raise InputError(path, f"is not JSON ({str(error)[:80]})") from error


def _once(pairs: list[tuple[str, Any]], path: str) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise InputError(path, "has a word twice; is it a vocabulary?")
    return found


def _read_yaml(path: str) -> Any:
    """YAML of one ``word: number`` a line, as Marian writes it; a file that begins as JSON is JSON."""
    if read_small(path, regular=True).lstrip().startswith(b"{"):
        return _read_json(path)
    words: dict[str, int] = {}
    for line, text in _numbered(path):
        if not text or text.startswith("#") or text in ("---", "..."):
            continue
        found = _LINE.fullmatch(text)
        if found is None:
            raise InputError(path, f"expected `word: number`, found {text[:40]!r}", line=line)
        word = _scalar(found[1], path, line)
        if word in words:
            raise InputError(path, f"the word {word[:40]!r} is there twice; remove one of the lines", line=line)
        words[word] = int(found[2])
    return words


def _scalar(written: str, path: str, line: int) -> str:
    """The text of a key, which may stand in quotes."""
    if written[0] not in "\"'" or len(written) == 1:
        return written
    try:
        return str(parse_yaml(f"[{written}]")[0])
    except (YamlProblem, TypeError, IndexError) as error:
        raise InputError(path, f"expected a word in quotes, found {written[:40]!r}", line=line) from error


def _read_list(path: str) -> dict[str, int]:
    """One word a line; its number counts the lines from 0."""
    words: dict[str, int] = {}
    for line, word in _numbered(path):
        if not word or words.setdefault(word, line - 1) != line - 1:
            problem = f"the word {word[:40]!r} is there twice" if word else "expected one word a line, found none"
            raise InputError(path, problem, line=line)
    return words


def _numbered(path: str) -> Iterator[tuple[int, str]]:
    read_small(path, regular=True)  # a pipe would not end
    return enumerate(read_text_lines(path, errors="surrogateescape"), start=1)


def _refuse_sentencepiece(path: str) -> Any:
    raise InputError(path, "is a SentencePiece model; give its pieces in the order of their numbers, one a line")
