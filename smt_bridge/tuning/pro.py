"""Tuning as ranking (Hopkins and May 2011): a classifier that tells the better of two hypotheses.

For every sentence ``SAMPLED`` pairs are drawn; those whose sentence scores differ by at least
``DIFFERENCE`` are candidates, and the ``KEPT`` with the largest difference become examples, in both
directions (section 4 of the paper). Logistic regression with a Gaussian prior on the difference of the
features gives the weights; Newton's method finds them.

Shapes: D searched columns, S sentences, L entries of a list, E examples.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from smt_bridge.metrics import bleu as bleu_counts
from smt_bridge.metrics.metric import BLEU, Metric
from smt_bridge.tuning.mert import Tuned, normalised
from smt_bridge.tuning.pool import Floats, NbestPool

SAMPLED = 5000
KEPT = 50
DIFFERENCE = 5.0  # points of the sentence score (0..100)
_PRIOR = 1.0  # precision of the Gaussian prior, in examples, on features of unit spread
_NEWTON_STEPS = 25


def tune_pro(pool: NbestPool, start: Floats, *, tuned: npt.NDArray[np.bool_] | None = None, seed: int = 1) -> Tuned:
    """Weights (D,) that rank hypotheses as the metric does.

    The start is kept where the corpus score would be lower. Columns outside ``tuned`` take part with their
    start weight.
    """
    before = Tuned(normalised(start), float(pool.metric.score(pool.best_statistics(start))))
    searched = pool.varying() if tuned is None else tuned & pool.varying()
    columns = np.flatnonzero(searched)
    if not len(columns):
        return before
    spreads = pool.spreads()[columns]
    others = start.copy()
    others[columns] = 0.0
    base = pool.scores(others)
    differences, offsets = _examples(pool, columns, spreads, base, np.random.default_rng(seed))
    if not len(differences):
        return before
    weights = start.copy()
    weights[columns] = logistic_regression(differences, offsets) / spreads
    weights = normalised(weights)
    score = float(pool.metric.score(pool.best_statistics(weights)))
    return Tuned(weights, score) if score > before.score else before


def logistic_regression(differences: Floats, offsets: Floats, *, prior: float = _PRIOR) -> Floats:
    """The weights (D,) that maximise sum log sigmoid(x . w + o) - prior / 2 |w|^2 over examples (E, D), (E,)."""
    weights = np.zeros(differences.shape[1])
    for _ in range(_NEWTON_STEPS):
        margins = np.clip(np.einsum("ed,d->e", differences, weights) + offsets, -500, 500)
        wrong = 1.0 / (1.0 + np.exp(margins))
        gradient = np.einsum("e,ed->d", wrong, differences) - prior * weights
        curvature = (differences * (wrong * (1.0 - wrong))[:, None]).T @ differences
        step = np.linalg.solve(curvature + prior * np.eye(len(weights)), gradient)
        longest = float(np.abs(step).max())
        weights = weights + step / max(1.0, longest / 10.0)
        if longest < 1e-8:
            break
    return weights


def sentence_scores(counts: Floats, metric: Metric) -> Floats:
    """Scores (N,) of single hypotheses (N, C); BLEU with one added to the counts of bigrams and longer.

    That is BLEU+1 of Lin and Och (2004), which the paper uses.
    """
    if metric is not BLEU:
        return metric.score(counts)
    smoothed = counts.astype(np.float64)
    order = bleu_counts.ORDER
    smoothed[:, 1:order] += 1.0
    smoothed[:, order + 1 : 2 * order] += 1.0
    return bleu_counts.bleu(smoothed)


def _examples(
    pool: NbestPool,
    columns: npt.NDArray[np.intp],
    spreads: Floats,
    base: Floats,
    generator: np.random.Generator,
) -> tuple[Floats, Floats]:
    """Differences better minus worse (E, D) in scaled units, and those of the columns that are not searched."""
    differences, offsets = [np.empty((0, len(columns)))], [np.empty(0)]
    for sentence in range(len(base)):
        real = np.flatnonzero(np.isfinite(pool.padding[sentence]))
        scores = sentence_scores(pool.statistics[sentence, real].astype(np.float64), pool.metric)
        first, second = generator.integers(0, len(real), (2, SAMPLED))
        gaps = scores[first] - scores[second]
        order = np.argsort(-np.abs(gaps), kind="stable")[:KEPT]
        order = order[np.abs(gaps[order]) >= DIFFERENCE]
        swap = gaps[order] < 0
        better = real[np.where(swap, second[order], first[order])]
        worse = real[np.where(swap, first[order], second[order])]
        table = pool.features[columns, sentence]
        differences.append(((table[:, better] - table[:, worse]) / spreads[:, None]).T)
        offsets.append(base[sentence, better] - base[sentence, worse])
    return np.concatenate(differences), np.concatenate(offsets)
