"""Tuning that is judged on sentences it did not see: by folds of the development set.

MERT fits a few hundred sentences too well, and its best run best of all. So the result is the mean of its runs, on
features of unit spread. The *ridge* is the share of the way from this mean back to the start. The folds choose it: 0
where held-out sentences show no gain that nearly all bootstrap samples of them have.

The weights are also compared with the *baseline systems* that a list was merged from (``smt_bridge.nbest.merge``). The
column ``FirstS0`` of a system is 1 for its best hypothesis and 0 for all others, so that the weights ``FirstS0= 1`` are
that system alone. The result is the best system alone where it is better on the tuned sentences, or better on held-out
ones and in nearly all bootstrap samples of these at least as good. A mere difference is not enough: of a hundred
sentences it is chance more often than not, and the combination is the better guess.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from smt_bridge.errors import WiringError
from smt_bridge.ordered_sum import ordered_sum
from smt_bridge.tuning.plan import TuningPlan
from smt_bridge.tuning.pool import Floats, NbestPool, Tuned
from smt_bridge.tuning.tune import CrossValidation, Search, TuningReport, report_of, search, start_weights

_SAMPLES = 1000  # of the bootstrap
_SURE = 0.95  # share of the samples in which a ridge, or a system alone, has to be at least as good

_Counts = npt.NDArray[np.int64]


def tune_by_plan(pool: NbestPool, plan: TuningPlan) -> TuningReport:
    """Tune on all sentences, with the ridge that is best in the folds; the best baseline alone where that is better.

    Raises WiringError where the list lacks a baseline, and for fewer than two folds or sentences.
    """
    check_baselines(pool, plan.baselines)
    parts = _folds_of(pool, plan.options.folds)
    found, results = _tuned(pool, plan)
    if not parts or (found.note and not plan.baselines):
        return report_of(pool, found, found.best)
    alone = {name: pool.best_counts(start_weights(pool, {name: (1.0,)})) for name in plan.baselines}
    systems = {name: float(pool.metric.score(counts.sum(axis=0))) for name, counts in alone.items()}
    folds = [_judged_fold(pool, part, plan) for part in parts]
    least = max(found.start.score, *systems.values()) if systems else found.start.score
    chosen = _best_allowed(pool, folds, [place == 0 or one.score >= least for place, one in enumerate(results)])
    validation, held_out = _validation(pool, folds)
    report = report_of(pool, found, results[chosen])
    report = report._replace(ridge=plan.ridges[chosen], validation=validation, systems=systems)
    best = report.best_system
    if best is None or not _is_better(pool, alone[best], report, validation, held_out):
        return report
    weights = {name: (0.0,) * len(values) for name, values in report.weights.items()} | {best: (1.0,)}
    return report._replace(weights=weights, score=systems[best], ridge=0.0, kept=best)


def _is_better(
    pool: NbestPool, alone: _Counts, report: TuningReport, validation: CrossValidation, held_out: _Counts
) -> bool:
    """Whether a system with these counts (S, C) beats the tuned weights, on the tuned sentences or on held-out ones."""
    score = float(pool.metric.score(alone.sum(axis=0)))
    if score > report.score:
        return True
    return score > validation.held_out and _is_as_good(pool, alone, held_out)


class _Fold(NamedTuple):
    """For each ridge the score on the tuned sentences, and the counts (K, S, C) of the others."""

    tuned: list[float]
    held_out: _Counts


def _judged_fold(pool: NbestPool, part: npt.NDArray[np.intp], plan: TuningPlan) -> _Fold:
    outside = pool.of_sentences(part)
    _, results = _tuned(pool.of_sentences(np.setdiff1d(np.arange(len(pool.padding)), part)), plan)
    held_out = np.stack([outside.best_counts(one.weights) for one in results])
    return _Fold([one.score for one in results], held_out)


def _tuned(pool: NbestPool, plan: TuningPlan) -> tuple[Search, list[Tuned]]:
    """What the tuner found, and the result for each ridge."""
    found = search(pool, plan.start, plan.options)
    if len(plan.ridges) == 1 or found.note:
        return found, [found.best] * len(plan.ridges)
    spreads = pool.spreads()
    mean = ordered_sum(np.stack([_moving_by_one(run.weights, spreads) for run in found.runs]).T) / len(found.runs)
    begun = _moving_by_one(found.start.weights, spreads)
    damped = [(1.0 - ridge) * mean + ridge * begun for ridge in plan.ridges]
    return found, [pool.judged(weights) for weights in damped]


def _moving_by_one(weights: Floats, spreads: Floats) -> Floats:
    """The same ranking, with weights that move scores within the lists by one in all."""
    moved = float(np.abs(weights * spreads).sum())
    return weights / moved if moved > 0.0 else weights


def _best_allowed(pool: NbestPool, folds: Sequence[_Fold], allowed: Sequence[bool]) -> int:
    """The ridge of the best score on held-out sentences among those allowed; 0 where that may be chance."""
    best = int(np.argmax(np.where(allowed, pool.metric.score(_total(folds)), -np.inf)))
    held_out = np.concatenate([fold.held_out for fold in folds], axis=1)
    return best if _is_as_good(pool, held_out[best], held_out[0]) else 0


def _total(folds: Sequence[_Fold]) -> _Counts:
    """The counts (K, C) of all held-out sentences, for each ridge."""
    total: _Counts = np.stack([fold.held_out.sum(axis=1) for fold in folds]).sum(axis=0)
    return total


def _validation(pool: NbestPool, folds: Sequence[_Fold]) -> tuple[CrossValidation, _Counts]:
    """What tuning reaches elsewhere, each fold by the ridge that is best in the others; and the sentences' counts."""
    tuned, counts = [], np.empty((len(pool.padding), pool.metric.columns), dtype=np.int64)
    for place, fold in enumerate(folds):
        others = [other for other in folds if other is not fold]
        chosen = _best_allowed(pool, others, [True] * len(fold.tuned))
        tuned.append(fold.tuned[chosen])
        counts[place :: len(folds)] = fold.held_out[chosen]
    return CrossValidation(len(folds), statistics.fmean(tuned), float(pool.metric.score(counts.sum(axis=0)))), counts


def _is_as_good(pool: NbestPool, one: _Counts, other: _Counts) -> bool:
    """Whether the first counts (S, C) are at least as good as the second in nearly all samples of sentences."""
    drawn = np.random.default_rng(1).multinomial(len(one), np.full(len(one), 1.0 / len(one)), _SAMPLES)
    better = pool.metric.score(drawn @ one) >= pool.metric.score(drawn @ other)
    return bool(better.mean() >= _SURE)


def check_baselines(pool: NbestPool, baselines: Sequence[str]) -> None:
    """Raise WiringError where a baseline is no feature of one value."""
    for baseline in baselines:
        if [column.component for column in pool.columns if column.name == baseline] != [0]:
            known = ", ".join(column.name for column in pool.columns if column.name.startswith("First")) or "none"
            remedy = f"`smt-bridge add-features` makes one for each of several lists (here: {known})"
            raise WiringError(f"the list has no feature {baseline} of one value; {remedy}")


def _folds_of(pool: NbestPool, folds: int | None) -> list[npt.NDArray[np.intp]]:
    """The sentences that are held out in turn, at most one fold for each sentence; no folds where none are asked for.

    Raises WiringError for fewer than two.
    """
    if folds is None:
        return []
    folds, sentences = min(folds, len(pool.padding)), np.arange(len(pool.padding))
    if folds < 2:
        raise WiringError("cross-validation needs at least two sentences and two folds")
    return [np.flatnonzero(sentences % folds == fold) for fold in range(folds)]
