"""Columns of lexicons and n-gram models.

``Model1`` is IBM Model 1 of a hypothesis and its source (Brown et al. 1993, section 4.1):
p(e | f) = prod_j 1/(l+1) sum_i t(e_j | f_i), with i over the l words of f and NULL. As a feature of n-best lists it
helped more than any other of Och et al. 2004 ("A Smorgasbord of Features"): it sees whether every word is accounted
for, wherever it stands. ``Lexicon`` is a table of Moses, lex.e2f or lex.f2e. The features of KenLM are the
log-probability of a hypothesis, the same per word, and its unknown words.

Shapes: N hypotheses, W distinct words of them, S source words.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from nmt_core.files.lexicon_lines import NULL, read_lexicon_lines
from nmt_core.kenlm import NgramModel
from smt_bridge.errors import WiringError
from smt_bridge.features.base import Candidates
from smt_bridge.metadata import Signature, file_fingerprint
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
    """log p(hypothesis | source), or log p(source | hypothesis) where ``reverse``.

    ``path`` is a lexicon of p(target word | source word), ``lex.f2e``; for ``reverse`` of
    p(source word | target word), ``lex.e2f``.
    """

    def __init__(self, path: str, *, reverse: bool = False) -> None:
        self.names: tuple[str, ...] = ("ModelOnereverse0" if reverse else "ModelOne0",)
        self._lexicon = Lexicon(path)
        self._reverse = reverse
        self._checked = False

    @property
    def signature(self) -> str:
        """Direction, floor and the lexicon's fingerprint."""
        direction = "reverse" if self._reverse else "forward"
        model = file_fingerprint(self._lexicon.path)
        signature = Signature.of("model1", direction=direction, model=model, log="e", norm="none", floor=f"{FLOOR:g}")
        return str(signature.with_field("dtype", "float64"))

    def compute(self, groups: Sequence[Candidates]) -> list[list[tuple[float, ...]]]:
        """One number per hypothesis; raises WiringError for a lexicon of the other direction."""
        if not self._checked:
            self._check_direction(groups)
        return [[(score,) for score in self._scores(group).tolist()] for group in groups]

    def _scores(self, group: Candidates) -> Floats:
        source = _words(group.source)
        words, counts_NW = _counts(group.hypotheses)
        lengths_N = ordered_sum(counts_NW)
        if self._reverse:
            sums_NS = _products(counts_NW, self._lexicon.table(source, words)) + self._lexicon.table(source, [NULL]).T
            logs: Floats = ordered_sum(np.log(np.maximum(sums_NS, FLOOR))) - len(source) * np.log(lengths_N + 1.0)
        else:
            sums_W = ordered_sum(self._lexicon.table(words, [*source, NULL]))
            logs = ordered_sum(counts_NW * np.log(np.maximum(sums_W, FLOOR))) - lengths_N * np.log(len(source) + 1.0)
        return logs

    def _check_direction(self, groups: Sequence[Candidates]) -> None:
        """The lexicon of the other direction knows the words too, but on the wrong side."""
        sources = list({word for group in groups for word in _words(group.source)})
        targets = list({word for group in groups for text in group.hypotheses for word in _words(text)})
        generated, given = (sources, targets) if self._reverse else (targets, sources)
        right = self._lexicon.knows_generated(generated) + self._lexicon.knows_given(given)
        wrong = self._lexicon.knows_generated(given) + self._lexicon.knows_given(generated)
        if wrong > 2 * right:
            other = "model1" if self._reverse else "model1reverse"
            raise WiringError(
                f"{self._lexicon.path}: the lexicon is of the other direction ({wrong} words of the list fit that way, "
                f"{right} this way); use it with {other}"
            )
        self._checked = bool(sources and targets)


def _products(counts_NW: Floats, table_SW: Floats) -> Floats:
    """The product (N, S) of the first with the second transposed, word by word, without BLAS."""
    sums_NS = np.zeros((len(counts_NW), len(table_SW)))
    for word in range(counts_NW.shape[1]):
        sums_NS += counts_NW[:, word, None] * table_SW[:, word]
    return sums_NS


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

    ``per_word``: the first alone, divided by the number of words and the end. ``path`` is an ARPA file (plain or gzip)
    or a binary of ``build_binary``. Raises ConfigError when the kenlm module is not installed and InputError when the
    file is not a model.
    """

    def __init__(self, path: str, *, per_word: bool = False) -> None:
        self.names: tuple[str, ...] = ("KenLMnorm0",) if per_word else ("KENLM0", "KenLMoov0")
        self._path, self._model, self._per_word = path, _load(path), per_word

    @property
    def signature(self) -> str:
        """Order and fingerprint of the model."""
        feature, norm = ("kenlmnorm", "words") if self._per_word else ("kenlm", "none")
        model = {"lm": f"kenlm{self._model.order}", "model": file_fingerprint(self._path)}
        return str(Signature.of(feature, direction="target", **model, log="e", norm=norm, dtype="float32"))

    def compute(self, groups: Sequence[Candidates]) -> list[list[tuple[float, ...]]]:
        """The numbers of every hypothesis; equal texts are scored once."""
        known = {text: self._score(text) for text in {text for group in groups for text in group.hypotheses}}
        return [[known[text] for text in group.hypotheses] for group in groups]

    def _score(self, text: str) -> tuple[float, ...]:
        words = _words(text)
        log_prob = self._model.log_prob(words)
        if self._per_word:
            return (log_prob / (len(words) + 1),)
        return log_prob, float(sum(word not in self._model for word in words))


@lru_cache(maxsize=4)
def _load(path: str) -> NgramModel:
    """The model of a file; features of the same file share it."""
    return NgramModel(path)
