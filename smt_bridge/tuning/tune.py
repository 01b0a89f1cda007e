"""From a pool to weights: tuner, seeds and their results."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from nmt_core.base.messages import counted
from smt_bridge.errors import WiringError
from smt_bridge.tuning.mert import tune_mert
from smt_bridge.tuning.mira import tune_mira
from smt_bridge.tuning.options import TuningOptions
from smt_bridge.tuning.pool import Floats, NbestPool, Tuned
from smt_bridge.tuning.pro import tune_pro

Weights = dict[str, tuple[float, ...]]
Start = Mapping[str, Sequence[float]]
_Mask = npt.NDArray[np.bool_]


class CrossValidation(NamedTuple):
    """Mean score on what was tuned on, and the score of all held-out parts put together."""

    folds: int
    tuned: float
    held_out: float


class TuningReport(NamedTuple):
    """The weights, their score on the pool, the score at the start, and every run's weights and score.

    Scores are the metric's, higher is better (TER is negative). ``note`` says why nothing was searched, if so. What
    sentences that tuning did not see say: ``ridge`` is the share of the start in the weights, ``validation`` is None
    where no sentence was held out, ``systems`` are the scores of each baseline alone, and ``kept`` is the one that is
    the result, None where tuned weights are.
    """

    weights: Weights
    score: float
    score_at_start: float
    runs: tuple[tuple[Weights, float], ...]
    note: str = ""
    ridge: float = 0.0
    validation: CrossValidation | None = None
    systems: Mapping[str, float] = MappingProxyType({})
    kept: str | None = None

    @property
    def best_system(self) -> str | None:
        """The best single system."""
        return max(self.systems, key=lambda name: self.systems[name], default=None)

    @property
    def scores(self) -> tuple[float, ...]:
        """Scores of the runs."""
        return tuple(score for _, score in self.runs)

    @property
    def mean(self) -> float:
        """Mean score of the runs."""
        return statistics.fmean(self.scores)

    @property
    def deviation(self) -> float:
        """Standard deviation of the score between runs, 0 for a single one."""
        return statistics.stdev(self.scores) if len(self.runs) > 1 else 0.0


TUNERS = {"mert": tune_mert, "mira": tune_mira, "pro": tune_pro}


class Search(NamedTuple):
    """The start weights (D + K,), the result of every run, and why nothing was searched (or nothing).

    Where nothing was searched the only result is the start.
    """

    start: Tuned
    runs: tuple[Tuned, ...]
    note: str

    @property
    def best(self) -> Tuned:
        """The best run, of equals the earliest."""
        return max(self.runs, key=lambda run: run.score)


def search(pool: NbestPool, start: Start | None, options: TuningOptions) -> Search:
    """Run a tuner with several seeds; L1 norm of each result is 1.

    ``start`` maps names to weights; names that it lacks begin at 0. Without it all tuned ones begin equal,
    the others at 0; MIRA begins at 0. Raises WiringError where start weights or the names of ``options.features``
    do not fit the list.
    """
    tuned = _tuned_columns(pool, options.features)
    weights = _start(pool, start, tuned, options.tuner)
    begun = Tuned(weights, pool.score(weights))
    searched = tuned & pool.varying()
    note = _why_not(pool, searched)
    if note:
        return Search(begun, (begun,), note)
    tuner = TUNERS[options.tuner]
    seeded = [options.model_copy(update={"seed": options.seed + run}) for run in range(options.runs)]
    return Search(begun, tuple(tuner(pool, weights, one, searched) for one in seeded), "")


def tune(pool: NbestPool, start: Start | None, options: TuningOptions) -> TuningReport:
    """The best of what ``search`` finds; raises as it."""
    found = search(pool, start, options)
    return report_of(pool, found, found.best)


def report_of(pool: NbestPool, found: Search, result: Tuned) -> TuningReport:
    """A report of a search, with this result."""
    runs = tuple((_by_name(pool, run.weights), run.score) for run in found.runs)
    return TuningReport(_by_name(pool, result.weights), result.score, found.start.score, runs, found.note)


def start_weights(pool: NbestPool, start: Start) -> Floats:
    """Weights (D,) in the order of the pool's columns."""
    weights = np.zeros(len(pool.columns))
    arity = {column.name: column.component + 1 for column in pool.columns}
    for place, column in enumerate(pool.columns):
        if column.name in start:
            values = start[column.name]
            if len(values) != arity[column.name]:
                raise WiringError(
                    f"feature {column.name} has {counted(arity[column.name], 'value')} in the list but"
                    f" {counted(len(values), 'start weight')}"
                )
            weights[place] = values[column.component]
    if not weights.any():
        raise WiringError("the start weights give no feature of the list a weight; are they of another system?")
    return weights


def _start(pool: NbestPool, start: Start | None, tuned: _Mask, tuner: str) -> Floats:
    """Without start weights MIRA begins at 0, as kbmira does; else dense columns are equal and the sparse ones 0."""
    if start is not None:
        return start_weights(pool, start)
    if tuner == "mira":
        return np.zeros(len(tuned))
    dense = tuned & (np.arange(len(tuned)) < pool.dense)
    return dense / max(int(dense.sum()), 1)


def _tuned_columns(pool: NbestPool, features: Sequence[str] | None) -> _Mask:
    names = [column.name for column in pool.columns]
    if features is None:
        return np.ones(len(names), dtype=np.bool_)
    unknown = [name for name in features if name not in names]
    if unknown:
        known = ", ".join(dict.fromkeys(names))
        raise WiringError(f"the list has no feature {', '.join(unknown)}; it has {known}")
    return np.array([name in features for name in names])


def _why_not(pool: NbestPool, searched: _Mask) -> str:
    """Why there is nothing to search, or nothing."""
    if pool.padding.shape[1] == 1:
        return "every list has one hypothesis: there is nothing to choose, the start weights stay"
    if not searched.any():
        return "the features are equal within every list: there is nothing to tune, the start weights stay"
    real = np.isfinite(pool.padding)[:, :, None]
    if not ((pool.statistics != pool.statistics[:, :1]) & real).any():
        return "all hypotheses of a list match the references equally: there is nothing to gain, the start weights stay"
    return ""


def _by_name(pool: NbestPool, weights: Floats) -> Weights:
    """Weights by the names of the features; sparse ones without a weight are left out."""
    table: dict[str, list[float]] = {}
    for column, weight in zip(pool.columns, weights.tolist(), strict=True):
        table.setdefault(column.name, []).append(weight)
    dense = {column.name for column in pool.columns[: pool.dense]}
    return {name: tuple(values) for name, values in table.items() if name in dense or any(values)}
