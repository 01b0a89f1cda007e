"""Metrics as tuners see them: counts that add up, and a score of sums; BLEU, chrF and TER as sacrebleu has them.

Higher is better for every metric here, so that TER, an error rate, is negative.

Shapes: N hypotheses, C counts of a hypothesis.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import sacrebleu

from smt_bridge.metrics.bleu import COLUMNS, REFERENCE_LENGTH, Counts, Tokenize, bleu, bleu_counts, sacrebleu_tokenizer

Floats = npt.NDArray[np.float64]
_CHARACTERS = 6  # orders of chrF2
_BETA = 2.0


@dataclass(frozen=True)
class Metric:
    """How a metric counts.

    ``columns`` is C; ``score`` turns sums (..., C) into numbers up to 100; ``size`` is the column that
    holds the length of the references.
    """

    name: str
    columns: int
    size: int
    score: Callable[[npt.ArrayLike], Floats]


def chrf(statistics: npt.ArrayLike) -> Floats:
    """Corpus chrF2 in 0..100 of summed counts (..., 18): hypothesis, reference, matches of each order."""
    counts = np.asarray(statistics, dtype=np.float64)
    hypothesis, reference, matches = counts[..., 0::3], counts[..., 1::3], counts[..., 2::3]
    usable = hypothesis > 0  # of orders that the reference has none of, sacreBLEU counts none in the hypothesis
    orders = np.maximum(usable.sum(axis=-1), 1)
    precision = np.where(usable, matches / np.where(usable, hypothesis, 1.0), 0.0).sum(axis=-1) / orders
    recall = np.where(usable, matches / np.where(usable, reference, 1.0), 0.0).sum(axis=-1) / orders
    below = _BETA**2 * precision + recall
    found: Floats = np.where(below > 0, (1 + _BETA**2) * precision * recall / np.where(below > 0, below, 1.0), 0.0)
    return 100.0 * found


def negative_ter(statistics: npt.ArrayLike) -> Floats:
    """Minus the corpus TER in percent of summed counts (..., 2): edits, reference words (or as many times both)."""
    counts = np.asarray(statistics, dtype=np.float64)
    edits, length = counts[..., 0], counts[..., 1]
    found: Floats = np.where(length > 0, edits / np.where(length > 0, length, 1.0), np.where(edits > 0, 1.0, 0.0))
    return -100.0 * found


BLEU = Metric("bleu", COLUMNS, REFERENCE_LENGTH, bleu)
CHRF = Metric("chrf", 3 * _CHARACTERS, 1, chrf)
TER = Metric("ter", 2, 1, negative_ter)
METRICS = {metric.name: metric for metric in (BLEU, CHRF, TER)}


def as_reported(score: float, metric: str) -> float:
    """A score, or a difference of two, as people give it: that of TER, an error rate, with the other sign.

    >>> as_reported(-41.2, "ter"), as_reported(35.0, "bleu")
    (41.2, 35.0)
    """
    return -score if metric == TER.name else score


def show_score(score: float, metric: str) -> str:
    """A score as people write it.

    >>> show_score(-41.2, "ter")
    '41.20'
    """
    return f"{as_reported(score, metric):.2f}"


def counter(metric: Metric, tokenize: str) -> Callable[[Sequence[str], Sequence[str], Tokenize | None], Counts]:
    """A function of references, hypotheses of one sentence and what to do to these first, to counts (N, C).

    ``tokenize`` is sacrebleu's name of a tokeniser, for BLEU. The counts of chrF and TER are sacrebleu's own.
    """
    if metric is BLEU:
        tokenizer = sacrebleu_tokenizer(tokenize)
        return lambda references, hypotheses, prepare: bleu_counts(references, hypotheses, tokenizer, prepare)
    judge: Any = sacrebleu.CHRF() if metric is CHRF else sacrebleu.TER()

    def count(references: Sequence[str], hypotheses: Sequence[str], prepare: Tokenize | None) -> Counts:
        known = judge._cache_references([[reference] for reference in references])[0]
        found: dict[str, Sequence[float]] = {}
        for hypothesis in dict.fromkeys(hypotheses):
            text = judge._preprocess_segment((prepare(hypothesis) if prepare else hypothesis).rstrip())
            found[hypothesis] = judge._compute_segment_statistics(text, known)
        rows = np.array([found[hypothesis] for hypothesis in hypotheses], dtype=np.float64)
        # TER's length is the mean over the references: times their number it is whole again
        times = len(references) if metric is TER else 1
        return np.rint(rows * times).astype(np.int64).reshape(-1, metric.columns)

    return count
