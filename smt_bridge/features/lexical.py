"""Columns of words, lexicons and n-gram models.

``WordCount`` is the example to copy for a feature of your own. ``Model1`` is IBM Model 1 of a hypothesis and its
source (Brown et al. 1993, section 4.1): p(e | f) = prod_j 1/(l+1) sum_i t(e_j | f_i), with i over the l words of f and
NULL. As a feature of n-best lists it helped more than any other of Och et al. 2004 ("A Smorgasbord of Features"): it
sees whether every word is accounted for, wherever it stands. ``Lexicon`` is the table lex.f2e of Moses. The features
of KenLM are the log-probability of a hypothesis, and its unknown words.

Shapes: N hypotheses, W distinct words of them.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Sequence
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from nmt_core.files.lexicon_lines import NULL, read_lexicon_lines
from nmt_core.kenlm import NgramModel
from smt_bridge.errors import WiringError
from smt_bridge.features.base import Candidates
from smt_bridge.metadata import file_fingerprint, signature_of
from smt_bridge.ordered_sum import ordered_sum


class WordCount:
    """The number of words of a hypothesis; its weight is what a word is worth."""

    def __init__(self, name: str = "WordCount0") -> None:
        self.names: tuple[str, ...] = (name,)
        self.signature = signature_of("wordcount")

    def compute(self, groups: Sequence[Candidates]) -> list[list[tuple[float, ...]]]:
        """Words are what stands between spaces."""
        return [[(float(len(_words(text))),) for text in group.hypotheses] for group in groups]


class LengthRatio:
    """Target words per source word, and how far that is from one: |log ratio|.

    The first rewards long hypotheses more where the source is short; the second is the same for twice and
    half as long. An empty side counts as one word.
    """

    def __init__(self) -> None:
        self.names: tuple[str, ...] = ("LengthRatio0", "LengthRatiolog0")
        self.signature = signature_of("lengthratio")

    def compute(self, groups: Sequence[Candidates]) -> list[list[tuple[float, ...]]]:
        """Both numbers of every hypothesis."""
        return [[_ratios(text, group.source) for text in group.hypotheses] for group in groups]


def _ratios(target: str, source: str) -> tuple[float, float]:
    words, length = len(_words(target)), max(len(_words(source)), 1)
    return words / length, abs(math.log(max(words, 1) / length))


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
        source = _words(group.source)
        words, counts_NW = _counts(group.hypotheses)
        lengths_N = ordered_sum(counts_NW)
        sums_W = ordered_sum(self._lexicon.table(words, [*source, NULL]))
        logs_N = ordered_sum(counts_NW * np.log(np.maximum(sums_W, FLOOR)))
        scores: Floats = logs_N - lengths_N * np.log(len(source) + 1.0)
        return scores

    def _check_direction(self, groups: Sequence[Candidates]) -> None:
        """The lexicon of the other direction knows the words too, but on the wrong side."""
        sources = list({word for group in groups for word in _words(group.source)})
        targets = list({word for group in groups for text in group.hypotheses for word in _words(text)})
        right = self._lexicon.knows_generated(targets) + self._lexicon.knows_given(sources)
        wrong = self._lexicon.knows_generated(sources) + self._lexicon.knows_given(targets)
        if wrong > 2 * right:
            raise WiringError(
                f"{self._lexicon.path}: the lexicon is of the other direction ({wrong} words of the list fit that way, "
                f"{right} this way); give lex.f2e, which has p(target word | source word)"
            )
        self._checked = bool(sources and targets)


def _words(text: str) -> list[str]:
    return [word for word in text.split(" ") if word]


def _counts(hypotheses: Sequence[str]) -> tuple[list[str], Floats]:
    """The distinct words, and how often each hypothesis has each: (N, W)."""
    numbers: dict[str, int] = {}
    cells: list[tuple[int, int]] = []
    for row, text in enumerate(hypotheses):
        cells += [(row, numbers.setdefault(word, len(numbers))) for word in _words(text)]
    counts = np.zeros((len(hypotheses), len(numbers)))
    if cells:
        rows, columns = np.array(cells).T
        np.add.at(counts, (rows, columns), 1.0)
    return list(numbers), counts


class KenLMFeature:
    """Natural log of p(hypothesis) with sentence boundaries, and the count of words outside the model.

    ``path`` is an ARPA file (plain or gzip) or a binary of ``build_binary``. Raises ConfigError when the kenlm module
    is not installed and InputError when the file is not a model.
    """

    def __init__(self, path: str) -> None:
        self.names: tuple[str, ...] = ("KENLM0", "KenLMoov0")
        self._path, self._model = path, _load(path)

    @property
    def signature(self) -> str:
        """Order and fingerprint of the model."""
        model = {"lm": f"kenlm{self._model.order}", "model": file_fingerprint(self._path)}
        return signature_of("kenlm", direction="target", **model, log="e", norm="none", dtype="float32")

    def compute(self, groups: Sequence[Candidates]) -> list[list[tuple[float, ...]]]:
        """The numbers of every hypothesis; equal texts are scored once."""
        known = {text: self._score(text) for text in {text for group in groups for text in group.hypotheses}}
        return [[known[text] for text in group.hypotheses] for group in groups]

    def _score(self, text: str) -> tuple[float, ...]:
        words = _words(text)
        return self._model.log_prob(words), float(sum(word not in self._model for word in words))


@lru_cache(maxsize=4)
def _load(path: str) -> NgramModel:
    """The model of a file; features of the same file share it."""
    return NgramModel(path)
