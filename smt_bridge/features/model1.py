"""IBM Model 1 of a hypothesis and its source (Brown et al. 1993, section 4.1), by the table lex.f2e of Moses.

p(e | f) = prod_j 1/(l+1) sum_i t(e_j | f_i), with i over the l words of f and NULL. As a feature of n-best lists it
helped more than any other of Och et al. 2004 ("A Smorgasbord of Features"): it sees whether every word is accounted
for, wherever it stands.

Shapes: N hypotheses, W distinct words of them.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from nmt_core.base.words import split_words
from nmt_core.files.lexicon_lines import NULL, read_lexicon_lines
from smt_bridge.errors import WiringError
from smt_bridge.features.base import Candidates
from smt_bridge.metadata import file_fingerprint, signature_of
from smt_bridge.ordered_sum import ordered_sum

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


FLOOR = 1e-7  # of a word's sum: the last digit of Moses' lexicons

Floats = npt.NDArray[np.float64]


class Model1:
    """log p(hypothesis | source); ``path`` is a lexicon of p(target word | source word), ``lex.f2e``."""

    def __init__(self, path: str) -> None:
        self.names: tuple[str, ...] = ("ModelOne0",)
        self._lexicon = Lexicon(path)
        self._checked = False

    @property
    def signature(self) -> str:
        """Floor and the lexicon's fingerprint."""
        model = file_fingerprint(self._lexicon.path)
        numbers = {"log": "e", "norm": "none", "floor": f"{FLOOR:g}", "tok": "none", "dtype": "float64"}
        return signature_of("model1", direction="forward", model=model, **numbers)

    def compute(self, groups: Sequence[Candidates]) -> list[list[tuple[float, ...]]]:
        """One number per hypothesis; raises WiringError for a lexicon of the other direction."""
        if not self._checked:
            self._check_direction(groups)
        return [[(score,) for score in self._scores(group).tolist()] for group in groups]

    def _scores(self, group: Candidates) -> Floats:
        source = split_words(group.source)
        words, counts_NW = _counts(group.hypotheses)
        lengths_N = ordered_sum(counts_NW)
        sums_W = ordered_sum(self._lexicon.table(words, [*source, NULL]))
        logs_N = ordered_sum(counts_NW * np.log(np.maximum(sums_W, FLOOR)))
        scores: Floats = logs_N - lengths_N * np.log(len(source) + 1.0)
        return scores

    def _check_direction(self, groups: Sequence[Candidates]) -> None:
        """The lexicon of the other direction knows the words too, but on the wrong side."""
        sources = list({word for group in groups for word in split_words(group.source)})
        targets = list({word for group in groups for text in group.hypotheses for word in split_words(text)})
        right = self._lexicon.knows_generated(targets) + self._lexicon.knows_given(sources)
        wrong = self._lexicon.knows_generated(sources) + self._lexicon.knows_given(targets)
        if wrong > 2 * right:
            raise WiringError(
                f"{self._lexicon.path}: the lexicon is of the other direction ({wrong} words of the list fit that way, "
                f"{right} this way); give lex.f2e, which has p(target word | source word)"
            )
        self._checked = bool(sources and targets)


def _counts(hypotheses: Sequence[str]) -> tuple[list[str], Floats]:
    """The distinct words, and how often each hypothesis has each: (N, W)."""
    numbers: dict[str, int] = {}
    cells: list[tuple[int, int]] = []
    for row, text in enumerate(hypotheses):
        cells += [(row, numbers.setdefault(word, len(numbers))) for word in split_words(text)]
    counts = np.zeros((len(hypotheses), len(numbers)))
    if cells:
        rows, columns = np.array(cells).T
        np.add.at(counts, (rows, columns), 1.0)
    return list(numbers), counts
