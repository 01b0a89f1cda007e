"""Batch MIRA on k-best lists (Cherry and Foster 2012, section 3.2 and algorithm 1), as Moses' ``kbmira`` has it.

Sentence by sentence, the *hope* has both a high model score and a high gain of the metric, the *fear* a
high model score and a low gain. Where these are two and the hope gains more, the weights move, by at most ``C``,
until the hope is ahead of the fear by the difference of their gains, and the background corpus decays and takes
in the hope. The gain of a hypothesis is the score (0..1) of the background with its counts, times the length of
both (Chiang et al. 2008). The weights of a pass are the mean over all *updates* so far, n of them: the sum of the
n + 1 weights before, between and after them, divided by n. Of the passes' weights those of the best corpus score
are taken.

What ``kbmira`` does not have: columns that keep their start weight, other metrics than BLEU, the start itself as
the result where no pass is better, double precision, and weights written with L1 norm 1 (mert-moses.pl brings
them to it later). Its order of sentences comes from C's ``rand``, ours from NumPy.

Shapes: D searched columns, S sentences, L entries of a list, C counts.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from smt_bridge.tuning.options import TuningOptions
from smt_bridge.tuning.pool import Floats, NbestPool, Tuned, bincount, normalised


def tune_mira(pool: NbestPool, start: Floats, options: TuningOptions, searched: npt.NDArray[np.bool_]) -> Tuned:
    """Weights of high corpus score, never below that of a start other than 0; sentences are shuffled by the seed."""
    before = Tuned(normalised(start), pool.score(start))
    best = before if start.any() else before._replace(score=-math.inf)  # weights of 0 rank nothing
    lists = _lists(pool, start, searched)
    generator = np.random.default_rng(options.seed)
    weights = AveragedWeights(start)
    background = np.ones(pool.metric.columns)
    for _ in range(options.passes):
        for sentence in generator.permutation(len(lists)).tolist():
            background = _step(lists[sentence], weights, background, pool, options)
        candidate = pool.judged(weights.mean())
        if candidate.score > best.score and candidate.weights.any():
            best = candidate
    return before if best.score == -math.inf else best


class AveragedWeights:
    """Weights that are updated, and their mean over the updates.

    With w_0 the start and w_k the weights after update k, the mean of n updates is (w_0 + ... + w_n) / n, and w_0
    before the first. Kept is the sum of k times the k-th change, so that an update touches its own columns only.
    """

    def __init__(self, start: Floats) -> None:
        self.current = start.copy()
        self._updates = 0
        self._late = np.zeros_like(start)

    def update(self, columns: npt.NDArray[np.intp], change: Floats) -> None:
        """Add ``change`` to the weights of ``columns``, each of which is named once."""
        self._updates += 1
        self.current[columns] += change
        self._late[columns] += self._updates * change

    def mean(self) -> Floats:
        """The mean."""
        if not self._updates:
            return self.current.copy()
        total: Floats = (self._updates + 1) * self.current - self._late
        return total / self._updates


class _List(NamedTuple):
    """One list: its values as (entry, place, value), the column of each place, counts (L, C), other columns' score."""

    entries: npt.NDArray[np.intp]
    places: npt.NDArray[np.intp]
    values: Floats
    columns: npt.NDArray[np.intp]
    counts: Floats
    base: Floats

    def scores(self, weights: Floats) -> Floats:
        """Model scores (L,), each summed in the order of the columns."""
        products = self.values * weights[self.columns][self.places]
        return bincount(self.entries, products, len(self.base)) + self.base

    def difference(self, better: int, worse: int) -> Floats:
        """The values of one entry less those of another, by place."""
        found = np.zeros(len(self.columns))
        for entry, sign in ((better, 1.0), (worse, -1.0)):
            first, last = np.searchsorted(self.entries, (entry, entry + 1))
            found[self.places[first:last]] += sign * self.values[first:last]
        return found


def _lists(pool: NbestPool, start: Floats, searched: npt.NDArray[np.bool_]) -> list[_List]:
    base = pool.scores(np.where(searched, 0.0, start))
    dense = np.flatnonzero(searched[: pool.dense])
    length = base.shape[1]
    lists = []
    for sentence in range(len(base)):
        real = np.flatnonzero(np.isfinite(pool.padding[sentence]))
        rest = pool.sparse.between(sentence * length, (sentence + 1) * length)
        used = searched[pool.dense + rest.columns]
        entries = np.concatenate([np.repeat(real, len(dense)), rest.rows[used]])
        columns = np.concatenate([np.tile(dense, len(real)), pool.dense + rest.columns[used]])
        values = np.concatenate([pool.features[dense, sentence][:, real].T.ravel(), rest.values[used]])
        order = np.argsort(entries, kind="stable")
        own, places = np.unique(columns[order], return_inverse=True)
        counts = pool.statistics[sentence, real].astype(np.float64)
        entries = np.searchsorted(real, entries[order])
        lists.append(_List(entries, places, values[order], own, counts, base[sentence, real]))
    return lists


def _step(
    current: _List, weights: AveragedWeights, background: Floats, pool: NbestPool, options: TuningOptions
) -> Floats:
    """Update the weights by one sentence; the background corpus after it."""
    scores = current.scores(weights.current)
    sums = background + current.counts
    gains = pool.metric.score(sums) / 100.0 * sums[:, pool.metric.size]
    hope, fear = int((scores + gains).argmax()), int((scores - gains).argmax())  # of equals the earliest
    gain = float(gains[hope] - gains[fear])
    if hope == fear or gain <= 0.0:
        return background
    loss = gain - float(scores[hope] - scores[fear])
    if loss > 0.0:
        difference = current.difference(hope, fear)
        length = math.fsum((difference * difference).tolist())
        rate = min(options.c, loss / length) if length > 0.0 else options.c
        weights.update(current.columns, rate * difference)
    after: Floats = options.decay * background + current.counts[hope]
    return after
