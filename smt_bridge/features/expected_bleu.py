"""Agreement with the other hypotheses: the expected sentence BLEU of Minimum Bayes Risk decoding.

Kumar and Byrne 2004, section 2: the hypothesis with the least expected loss, the loss being one minus a
metric against every other hypothesis, weighed by how probable that one is. Here the expectation is a
column among others, and its weight is tuned.

Shapes: N distinct hypotheses of a list.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from smt_bridge.features.agreement import Weighting, agreement_with_list
from smt_bridge.features.interface import Candidates
from smt_bridge.features.ngram_overlap import Floats, shared_ngrams
from smt_bridge.signature import Signature

ORDER = 4


class ExpectedBleu:
    """Mean sentence BLEU in 0..1 of a hypothesis against all of its list; ``weighting`` says how they count.

    Words are taken as they stand. Sentence BLEU is sacrebleu's: orders without a match smoothed by halving,
    orders longer than the hypothesis left out.
    """

    def __init__(self, weighting: str = "", name: str = "MBRBLEU0") -> None:
        self.names: tuple[str, ...] = (name,)
        self._weighting = Weighting.parse(weighting)
        self.signature = str(Signature.of("mbrbleu", weights=str(self._weighting), smooth="exp", eff="yes"))

    def __repr__(self) -> str:
        return f"ExpectedBleu({str(self._weighting)!r})"

    def compute(self, groups: Sequence[Candidates]) -> list[list[tuple[float, ...]]]:
        """One number per hypothesis; raises WiringError where totals are needed and absent."""
        return [agreement_with_list(group, self._weighting, bleu_of_all) for group in groups]


def bleu_of_all(hypotheses: Sequence[str]) -> Floats:
    """Sentence BLEU (N, N) in 0..1 of each hypothesis, the row, against each as reference."""
    numbers: dict[str, int] = {}
    rows = [[numbers.setdefault(word, len(numbers)) for word in text.split(" ") if word] for text in hypotheses]
    symbols = np.array([number for row in rows for number in row], dtype=np.int64)
    lengths = np.array([len(row) for row in rows], dtype=np.int64)
    log_sum = np.zeros((len(rows), len(rows)))
    halvings = np.zeros_like(log_sum)
    for order, matches in enumerate(shared_ngrams(symbols, lengths, orders=ORDER)):
        totals = np.maximum(lengths - order, 0)[:, None]
        used = totals > 0
        missing = used & (matches == 0)
        halvings += missing
        counted = np.where(missing, 0.5**halvings, matches)
        log_sum += np.log(np.where(used, counted / np.maximum(totals, 1), 1.0))
        if order == 0:
            related = matches > 0
    orders = np.clip(lengths, 1, ORDER)[:, None]
    brevity = np.minimum(0.0, 1.0 - lengths[None, :] / np.maximum(lengths, 1)[:, None])
    scores: Floats = np.where(related, np.exp(log_sum / orders + brevity), 0.0)
    return scores
