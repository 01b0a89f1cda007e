"""Tuning of a merged list that falls back to its best single system where held-out sentences show no gain.

A merged list holds the hypotheses of several systems (``smt_bridge.merging``). The *indicator* ``FirstS0`` of a system
is 1 for its best hypothesis and 0 for all others, so that the weights ``FirstS0= 1`` are that system alone. Weights
that were tuned on a thousand sentences can be worse than that on other sentences, above all where one system is
much better than the other. So tuning also starts from each system alone, and the tuned weights are compared with the
systems on sentences they were not tuned on: with K folds, each tuned without a K-th of the sentences and judged on it.
Where the sum of the folds is not better than the best system alone on the same sentences, or the weights of all
sentences are worse than it there, as the mean of several runs can be, the result is that system.
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


class HeldOutComparison(NamedTuple):
    """The metric's scores of each system alone, and of the folds' weights on the sentences they were not tuned on.

    Systems have the names of their indicators. ``kept`` is the one that is the result, None where tuned weights are.
    """

    systems: Mapping[str, float]
    held_out: float
    folds: int
    kept: str | None

    @property
    def best(self) -> str:
        """The best single system."""
        return max(self.systems, key=lambda name: self.systems[name])

    def as_json(self) -> dict[str, Any]:
        """The key ``guard`` of the report of tuning (docs/tuning.md)."""
        return {
            "halves": dict(self.systems),
            "held_out": self.held_out,
            "folds": self.folds,
            "kept": self.kept,
            "best": self.best,
        }


def tune_with_fallback(
    pool: NbestPool,
    start: Start | None,
    options: TuningOptions,
    *,
    indicators: Sequence[str],
    tuner: str = "mert",
    folds: int = 5,
) -> tuple[TuningReport, HeldOutComparison]:
    """Tune from ``start`` and from each system alone, and keep the best of these where tuned weights are not better.

    ``indicators`` are names of features. Raises WiringError where the list lacks one, and for fewer than two folds
    or sentences.
    """
    check_indicators(pool, indicators)
    folds = possible_folds(pool, folds)
    scores = {name: _score_of(pool, name) for name in indicators}
    report = _tune_from_all(pool, start, options, indicators, tuner)
    held_out = np.zeros(pool.metric.columns, dtype=np.int64)
    for inside, outside in split(pool, folds):
        found = _tune_from_all(inside, start, options._replace(runs=1), indicators, tuner)
        held_out += outside.best_statistics(start_weights(outside, found.weights))
    compared = HeldOutComparison(scores, float(pool.metric.score(held_out)), folds, None)
    best = compared.best
    if compared.held_out > scores[best] and report.score >= scores[best]:
        return report, compared
    alone = {name: (0.0,) * len(values) for name, values in report.weights.items()} | {best: (1.0,)}
    return report._replace(weights=alone, score=scores[best]), compared._replace(kept=best)


def _tune_from_all(
    pool: NbestPool, start: Start | None, options: TuningOptions, indicators: Sequence[str], tuner: str
) -> TuningReport:
    """The best of what is found from every start."""
    reports = [tune(pool, one, options, tuner=tuner) for one in starting_points(start, indicators)]
    return max(reports, key=lambda report: report.score)


def check_indicators(pool: NbestPool, indicators: Sequence[str]) -> None:
    """Raise WiringError where an indicator is no feature of one value."""
    for indicator in indicators:
        if [column.component for column in pool.columns if column.name == indicator] != [0]:
            known = ", ".join(column.name for column in pool.columns if column.name.startswith("First")) or "none"
            remedy = f"`smt-bridge merge` makes one per list (here: {known})"
            raise WiringError(f"the list has no feature {indicator} of one value; {remedy}")


def _score_of(pool: NbestPool, indicator: str) -> float:
    return float(pool.metric.score(pool.best_statistics(start_weights(pool, {indicator: (1.0,)}))))
