"""Agreement with the other hypotheses: the expected chrF2 of Minimum Bayes Risk decoding.

The metric is that of Popović 2015 and 2016 (character n-grams up to 6, recall twice as important as precision); what an
expectation over a list is, see ``expected_bleu``. It gives credit for parts of words.

Shapes: N distinct hypotheses of a list.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from smt_bridge.features.agreement import Weighting, agreement_with_list
from smt_bridge.features.interface import Candidates
from smt_bridge.features.ngram_overlap import Floats, shared_ngrams
from smt_bridge.signature import Signature

ORDER = 6
_BETA_2 = 4.0


class ExpectedChrf:
    """Mean chrF2 in 0..1 of a hypothesis against all of its list; ``weighting`` says how they count."""

    def __init__(self, weighting: str = "", name: str = "MBRCHRF0") -> None:
        self.names: tuple[str, ...] = (name,)
        self._weighting = Weighting.parse(weighting)
        self.signature = str(Signature.of("mbrchrf", weights=str(self._weighting), nc=str(ORDER), nw="0", space="no"))

    def __repr__(self) -> str:
        return f"ExpectedChrf({str(self._weighting)!r})"

    def compute(self, groups: Sequence[Candidates]) -> list[list[tuple[float, ...]]]:
        """One number per hypothesis; raises WiringError where totals are needed and absent."""
        return [agreement_with_list(group, self._weighting, chrf_of_all) for group in groups]


def chrf_of_all(hypotheses: Sequence[str]) -> Floats:
    """Sentence chrF2 (N, N) in 0..1 of each hypothesis, the row, against each as reference, as sacrebleu has it."""
    texts = ["".join(text.split()) for text in hypotheses]  # every kind of space, as the metric is defined
    symbols = np.frombuffer("".join(texts).encode("utf-32-le", "surrogatepass"), dtype="<u4").astype(np.int64)
    lengths = np.array([len(text) for text in texts], dtype=np.int64)
    precision = np.zeros((len(texts), len(texts)))
    recall, orders = np.zeros_like(precision), np.zeros_like(precision)
    for order, matches in enumerate(shared_ngrams(symbols, lengths, orders=ORDER)):
        totals = np.maximum(lengths - order, 0)
        both = (totals[:, None] > 0) & (totals[None, :] > 0)
        precision += matches / np.maximum(totals, 1)[:, None]
        recall += matches / np.maximum(totals, 1)[None, :]
        orders += both
    precision, recall = precision / np.maximum(orders, 1), recall / np.maximum(orders, 1)
    below = _BETA_2 * precision + recall
    scores: Floats = (1.0 + _BETA_2) * precision * recall / np.where(below > 0, below, 1.0)
    return scores
