"""A Moses lexicon as a table: word translation probabilities of lex.e2f or lex.f2e."""

from __future__ import annotations

from array import array
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from nmt_core.files.lexicon_lines import read_lexicon_lines

_SHIFT = 32


class Lexicon:
    """p(generated | given) of a file, plain or gzip; 16 bytes a line and the distinct words.

    Raises InputError, naming the line, for a line that is not two words and a probability.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self._generated: dict[bytes, int] = {}
        self._given: dict[bytes, int] = {}
        keys, probabilities = array("q"), array("d")
        for generated, given, probability in read_lexicon_lines(path):
            row = self._generated.setdefault(generated, len(self._generated))
            column = self._given.setdefault(given, len(self._given))
            keys.append(row << _SHIFT | column)
            probabilities.append(probability)
        order = np.argsort(np.frombuffer(keys, dtype=np.int64), kind="stable")
        self._keys = np.frombuffer(keys, dtype=np.int64)[order]
        self._probabilities = np.frombuffer(probabilities, dtype=np.float64)[order]

    def __repr__(self) -> str:
        return f"Lexicon({self.path!r}, {len(self._keys)} pairs)"

    def table(self, generated: Sequence[str], given: Sequence[str]) -> npt.NDArray[np.float64]:
        """p(generated | given) as (generated, given); 0 for a pair that is not in the file."""
        rows = _numbers(self._generated, generated) << _SHIFT
        wanted = rows[:, None] | _numbers(self._given, given)[None, :]
        places = np.minimum(np.searchsorted(self._keys, wanted), len(self._keys) - 1)
        found: npt.NDArray[np.float64] = np.where(self._keys[places] == wanted, self._probabilities[places], 0.0)
        return found

    def knows_generated(self, words: Sequence[str]) -> int:
        """How many of the words it generates."""
        return sum(word.encode() in self._generated for word in words)

    def knows_given(self, words: Sequence[str]) -> int:
        """How many of the words it generates from."""
        return sum(word.encode() in self._given for word in words)


def _numbers(known: dict[bytes, int], words: Sequence[str]) -> npt.NDArray[np.int64]:
    """The words' numbers; one that no word has for those outside."""
    return np.array([known.get(word.encode(), len(known)) for word in words], dtype=np.int64)
