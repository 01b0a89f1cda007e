"""IBM Model 1 of a hypothesis and its source, from a lexicon (Brown et al. 1993, section 4.1).

p(e | f) = prod_j 1/(l+1) sum_i t(e_j | f_i), with i over the l words of f and NULL. As a feature of
n-best lists it helped more than any other of Och et al. 2004 ("A Smorgasbord of Features"):
it sees whether every word is accounted for, wherever it stands.

Shapes: N hypotheses, W distinct words of them, S source words.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from nmt_core.files.lexicon_lines import NULL
from smt_bridge.errors import WiringError
from smt_bridge.features.interface import Candidates
from smt_bridge.features.lexicon import Lexicon
from smt_bridge.ordered_sum import ordered_sum
from smt_bridge.signature import Signature, file_fingerprint

FLOOR = 1e-7  # of a word's sum: the last digit of Moses' lexicons

Floats = npt.NDArray[np.float64]


class Model1:
    """log p(hypothesis | source), or log p(source | hypothesis) where ``reverse``.

    ``path`` is a lexicon of p(target word | source word), ``lex.f2e``; for ``reverse`` of
    p(source word | target word), ``lex.e2f``.
    """

    def __init__(self, path: str, name: str | None = None, *, reverse: bool = False) -> None:
        self.names: tuple[str, ...] = (name or ("ModelOnereverse0" if reverse else "ModelOne0"),)
        self._lexicon = Lexicon(path)
        self._reverse = reverse
        self._checked = False

    def __repr__(self) -> str:
        return f"Model1({self._lexicon!r}, reverse={self._reverse})"

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
