"""From a pool to weights: which tuner, how many seeds, and what came of them."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from smt_bridge.errors import WiringError
from smt_bridge.metrics.bleu import bleu
from smt_bridge.tuning.mert import MertResult, tune_mert
from smt_bridge.tuning.pool import Floats, NbestPool


class TuningOptions(NamedTuple):
    """``features`` limits the search to these names (None: all); runs use seeds ``seed``, ``seed`` + 1, ..."""

    features: Sequence[str] | None = None
    seed: int = 1
    runs: int = 3
    restarts: int = 20


class TuningReport(NamedTuple):
    """The best weights found, BLEU (0..100) at the start and of every run, and why nothing was searched, if so."""

    weights: dict[str, tuple[float, ...]]
    bleu: float
    bleu_at_start: float
    bleu_of_runs: tuple[float, ...]
    note: str = ""

    @property
    def mean(self) -> float:
        """Mean BLEU of the runs."""
        return statistics.fmean(self.bleu_of_runs)

    @property
    def deviation(self) -> float:
        """Standard deviation of BLEU between runs, 0 for a single one."""
        return statistics.stdev(self.bleu_of_runs) if len(self.bleu_of_runs) > 1 else 0.0


_Tuner = Callable[[NbestPool, Floats, npt.NDArray[np.bool_], int, int], MertResult]


def _mert(pool: NbestPool, start: Floats, tuned: npt.NDArray[np.bool_], seed: int, restarts: int) -> MertResult:
    return tune_mert(pool, start, tuned=tuned, seed=seed, restarts=restarts)


TUNERS: dict[str, _Tuner] = {"mert": _mert}


def tune(
    pool: NbestPool, start: Mapping[str, Sequence[float]] | None, options: TuningOptions, *, tuner: str = "mert"
) -> TuningReport:
    """Run a tuner with several seeds and keep the best; L1 norm of the result is 1.

    ``start`` maps names to weights; names that it lacks begin at 0, without it all begin equal. Raises
    WiringError where start weights or the names of ``options.features`` do not fit the list.
    """
    weights = start_weights(pool, start)
    tuned = _tuned_columns(pool, options.features)
    at_start = float(bleu(pool.best_statistics(weights)))
    note = _why_not(pool, tuned)
    if note:
        return TuningReport(_by_name(pool, weights), at_start, at_start, (at_start,), note)
    seeds = range(options.seed, options.seed + options.runs)
    results = [TUNERS[tuner](pool, weights, tuned, seed, options.restarts) for seed in seeds]
    best = max(results, key=lambda result: result.bleu)
    return TuningReport(_by_name(pool, best.weights), best.bleu, at_start, tuple(result.bleu for result in results))


def start_weights(pool: NbestPool, start: Mapping[str, Sequence[float]] | None) -> Floats:
    """Weights (D,) in the order of the pool's columns."""
    if start is None:
        return np.full(len(pool.columns), 1.0 / len(pool.columns))
    weights = np.zeros(len(pool.columns))
    arity = {column.name: column.component + 1 for column in pool.columns}
    for place, column in enumerate(pool.columns):
        if column.name in start:
            values = start[column.name]
            if len(values) != arity[column.name]:
                raise WiringError(
                    f"feature {column.name} has {arity[column.name]} values in the list but {len(values)} start weights"
                )
            weights[place] = values[column.component]
    if not weights.any():
        raise WiringError("the start weights give no feature of the list a weight; are they of another system?")
    return weights


def _tuned_columns(pool: NbestPool, features: Sequence[str] | None) -> npt.NDArray[np.bool_]:
    names = [column.name for column in pool.columns]
    if features is None:
        return np.ones(len(names), dtype=np.bool_)
    unknown = [name for name in features if name not in names]
    if unknown:
        known = ", ".join(dict.fromkeys(names))
        raise WiringError(f"the list has no feature {', '.join(unknown)}; it has {known}")
    return np.array([name in features for name in names])


def _why_not(pool: NbestPool, tuned: npt.NDArray[np.bool_]) -> str:
    """Why there is nothing to search, or nothing."""
    if pool.padding.shape[1] == 1:
        return "every list has one hypothesis: there is nothing to choose, the start weights stay"
    if not (tuned & pool.varying()).any():
        return "the features are equal within every list: there is nothing to tune, the start weights stay"
    real = np.isfinite(pool.padding)[:, :, None]
    if not ((pool.statistics != pool.statistics[:, :1]) & real).any():
        return "all hypotheses of a list match the references equally: there is nothing to gain, the start weights stay"
    return ""


def _by_name(pool: NbestPool, weights: Floats) -> dict[str, tuple[float, ...]]:
    table: dict[str, list[float]] = {}
    for column, weight in zip(pool.columns, weights, strict=True):
        table.setdefault(column.name, []).append(float(weight))
    return {name: tuple(values) for name, values in table.items()}
