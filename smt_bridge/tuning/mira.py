"""Batch MIRA on k-best lists (Cherry and Foster 2012, section 3.2 and algorithm 1), as Moses' kbmira does it.

Sentence by sentence, the *hope* has both a high model score and a high gain of the metric, the *fear* a
high model score and a low gain. The weights move, by at most ``C``, until the hope is ahead of the fear by
the difference of their gains. The gain of a hypothesis is what it adds to a decaying pseudo-corpus, times
the pseudo-corpus' size (Chiang et al. 2008). Of the averaged weights after every pass, those with the best
corpus score are taken.

Features are scaled to unit spread within the lists, so that ``C`` means the same for every feature.

Shapes: D searched columns, S sentences, L entries of a list, C counts.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from smt_bridge.tuning.mert import Tuned, normalised
from smt_bridge.tuning.pool import Floats, NbestPool

PASSES = 60
RATE = 0.01  # C of the paper, the most a weight vector moves for one sentence
DECAY = 0.999
_PATIENCE = 15  # passes without a better corpus score after which it is given up


def tune_mira(
    pool: NbestPool,
    start: Floats,
    *,
    tuned: npt.NDArray[np.bool_] | None = None,
    seed: int = 1,
    passes: int = PASSES,
    rate: float = RATE,
) -> Tuned:
    """Weights (D,) of high corpus score, never below that of the start; sentences are shuffled by ``seed``."""
    searched = pool.varying() if tuned is None else tuned & pool.varying()
    columns = np.flatnonzero(searched)
    best = Tuned(normalised(start), float(pool.metric.score(pool.best_statistics(start))))
    if not len(columns):
        return best
    spreads = pool.spreads()[columns]
    lists = _Lists(pool, start, columns, spreads)
    generator = np.random.default_rng(seed)
    scaled = start[columns] * spreads
    largest = np.abs(scaled).max()
    weights = scaled / largest if largest > 0 and not lists.fixed else scaled
    background, total, steps, since = np.ones(pool.metric.columns), np.zeros_like(weights), 0, 0
    for _ in range(passes):
        for sentence in generator.permutation(len(lists.features)):
            weights, background = lists.step(int(sentence), weights, background, rate=rate)
            total += weights
            steps += 1
        candidate = start.copy()
        candidate[columns] = total / steps / spreads
        if not lists.fixed:
            candidate[~searched] = 0.0 if largest == 0 else start[~searched] / largest
        candidate = normalised(candidate)
        score = float(pool.metric.score(pool.best_statistics(candidate)))
        since += 1
        if score > best.score:
            best, since = Tuned(candidate, score), 0
        if since >= _PATIENCE:
            break
    return best


class _Lists:
    """The lists one by one: features (L, D) in scaled units, counts (L, C), score of what is not searched (L,)."""

    def __init__(self, pool: NbestPool, start: Floats, columns: npt.NDArray[np.intp], spreads: Floats) -> None:
        others = start.copy()
        others[columns] = 0.0
        base = pool.scores(others)
        self.fixed = bool(base[np.isfinite(base)].any())
        self.features: list[Floats] = []
        self.counts: list[Floats] = []
        self.base: list[Floats] = []
        self._metric = pool.metric
        for sentence in range(len(base)):
            real = np.flatnonzero(np.isfinite(pool.padding[sentence]))
            self.features.append(pool.features[columns, sentence][:, real].T / spreads)
            self.counts.append(pool.statistics[sentence, real].astype(np.float64))
            self.base.append(base[sentence, real])

    def step(self, sentence: int, weights: Floats, background: Floats, *, rate: float) -> tuple[Floats, Floats]:
        """The weights and the pseudo-corpus after one sentence."""
        features, counts = self.features[sentence], self.counts[sentence]
        scores = np.einsum("ld,d->l", features, weights) + self.base[sentence]
        sums = background + counts
        gains = self._metric.score(sums) / 100.0 * sums[:, self._metric.size]
        hope, fear = int((scores + gains).argmax()), int((scores - gains).argmax())
        difference = features[hope] - features[fear]
        gain = gains[hope] - gains[fear]
        loss = gain - (scores[hope] - scores[fear])
        length = float(difference @ difference)
        if gain > 0 and loss > 0 and length > 0:
            weights = weights + min(rate, loss / length) * difference
        return weights, DECAY * (background + counts[hope])
