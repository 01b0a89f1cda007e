"""A hybrid is never worse than its halves: tuning that also starts from each half, and a check on held-out sentences.

A *half* is one of the systems whose hypotheses a merged list holds (``smt_bridge.merging``). Its indicator ``FirstS0``
is 1 for its best hypothesis and 0 for all others, so that the weights ``FirstS0= 1`` are that system alone. Weights
that were tuned on a thousand sentences can be worse than that on other sentences, above all where one system is
much better than the other. So the tuned weights are compared with the halves on sentences they were not tuned
on: with K folds, each tuned without a K-th of the sentences and judged on it. Where the sum of the folds is not
better than the best half on the same sentences, or the weights of all sentences are worse than it there, as the mean of
several runs can be, the result is that half.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from smt_bridge.errors import WiringError
from smt_bridge.tuning.pool import NbestPool
from smt_bridge.tuning.tune import (
    Start,
    TuningOptions,
    TuningReport,
    possible_folds,
    split,
    start_weights,
    starting_points,
    tune,
)


class Guard(NamedTuple):
    """The metric's score of each half, of the folds' weights on what they did not see, and the half that was kept.

    ``kept`` is None where the tuned weights were.
    """

    halves: Mapping[str, float]
    held_out: float
    folds: int
    kept: str | None

    @property
    def best(self) -> str:
        """The better half."""
        return max(self.halves, key=lambda name: self.halves[name])

    def as_json(self) -> dict[str, Any]:
        """For the report of tuning."""
        return {**self._asdict(), "halves": dict(self.halves), "best": self.best}


def tune_guarded(
    pool: NbestPool,
    start: Start | None,
    options: TuningOptions,
    *,
    halves: Sequence[str],
    tuner: str = "mert",
    folds: int = 5,
) -> tuple[TuningReport, Guard]:
    """Tune from ``start`` and from each half, and keep the best half instead where that holds better.

    ``halves`` are names of features. Raises WiringError where the list lacks one, and for fewer than two folds
    or sentences.
    """
    check_halves(pool, halves)
    folds = possible_folds(pool, folds)
    scores = {name: _score_of(pool, name) for name in halves}
    report = _tune_from_all(pool, start, options, halves, tuner)
    held_out = np.zeros(pool.metric.columns, dtype=np.int64)
    for inside, outside in split(pool, folds):
        found = _tune_from_all(inside, start, options._replace(runs=1), halves, tuner)
        held_out += outside.best_statistics(start_weights(outside, found.weights))
    guard = Guard(scores, float(pool.metric.score(held_out)), folds, None)
    if guard.held_out > scores[guard.best] and report.score >= scores[guard.best]:
        return report, guard
    kept = {name: (0.0,) * len(values) for name, values in report.weights.items()} | {guard.best: (1.0,)}
    return report._replace(weights=kept, score=scores[guard.best]), guard._replace(kept=guard.best)


def _tune_from_all(
    pool: NbestPool, start: Start | None, options: TuningOptions, halves: Sequence[str], tuner: str
) -> TuningReport:
    """The best of what is found from every start."""
    reports = [tune(pool, one, options, tuner=tuner) for one in starting_points(start, halves)]
    return max(reports, key=lambda report: report.score)


def check_halves(pool: NbestPool, halves: Sequence[str]) -> None:
    """Raise WiringError where a half is no feature of one value."""
    for half in halves:
        if [column.component for column in pool.columns if column.name == half] != [0]:
            known = ", ".join(column.name for column in pool.columns if column.name.startswith("First")) or "none"
            raise WiringError(
                f"the list has no feature {half} of one value; `smt-bridge merge` makes one per list (here: {known})"
            )


def _score_of(pool: NbestPool, half: str) -> float:
    return float(pool.metric.score(pool.best_statistics(start_weights(pool, {half: (1.0,)}))))
