"""From a pool to weights: tuner, seeds and their results; what each feature is worth."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt
from pydantic import BaseModel, Field, ValidationError

from nmt_core.base.errors import ConfigError
from nmt_core.base.messages import counted
from smt_bridge.errors import WiringError
from smt_bridge.tuning.mert import tune_mert
from smt_bridge.tuning.mira import MiraOptions, tune_mira
from smt_bridge.tuning.pool import Floats, NbestPool, Tuned
from smt_bridge.tuning.pro import tune_pro

Weights = dict[str, tuple[float, ...]]
Start = Mapping[str, Sequence[float]]
_Mask = npt.NDArray[np.bool_]


class TuningOptions(NamedTuple):
    """``features`` limits the search to these names (None: all); runs use seeds ``seed``, ``seed`` + 1, ...

    The best run is the result; Clark et al. 2011 ask to look at several. ``restarts`` is for MERT, ``mira`` for MIRA.
    """

    features: Sequence[str] | None = None
    seed: int = 1
    runs: int = 3
    restarts: int = 20
    mira: MiraOptions = MiraOptions()


_KEYS_OF_ONE = {"restarts": "mert", "passes": "mira", "c": "mira", "decay": "mira"}


class Tuner(BaseModel, frozen=True, extra="forbid"):
    """What ``--tuner NAME --tuner KEY=VALUE`` says: the search, its numbers, and how many folds are held out in turn.

    ``restarts`` is for MERT; ``passes``, ``c`` and ``decay`` are those of ``MiraOptions``.
    """

    name: Literal["mert", "mira", "pro"] = "mert"
    runs: int = Field(3, ge=1)
    seed: int = Field(1, ge=0)
    restarts: int = Field(20, ge=0)
    folds: int | None = Field(None, ge=2)
    passes: int = Field(60, ge=1)
    c: float = Field(0.01, gt=0.0, le=1e6, allow_inf_nan=False)
    decay: float = Field(0.999, ge=0.0, le=1.0)

    @classmethod
    def of(cls, words: Sequence[str]) -> Tuner:
        """By the values of the option. Raises ConfigError."""
        given: dict[str, str] = {}
        for word in words:
            key, equals, value = word.partition("=")
            if not equals:
                key, value = "name", word
            if key in given:
                raise ConfigError(f"--tuner {word}: {key} is given twice")
            given[key] = value
        try:
            tuner = cls.model_validate_strings(given)
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            key = str(first["loc"][0])
            if key not in cls.model_fields:
                known = ", ".join(f"{name}=" for name in cls.model_fields if name != "name")
                raise ConfigError(f"--tuner {key}=: expected mert, mira, pro, or one of {known}") from error
            raise ConfigError(f"--tuner {key}={given[key]}: {first['msg']}") from error
        unused = next((key for key, name in _KEYS_OF_ONE.items() if key in given and tuner.name != name), None)
        if unused is not None:
            raise ConfigError(f"--tuner {unused}= is a key of {_KEYS_OF_ONE[unused]}; {tuner.name} does not use it")
        return tuner

    def options(self, features: Sequence[str] | None = None) -> TuningOptions:
        """How to tune these ``features``, None for all."""
        mira = MiraOptions(self.passes, self.c, self.decay)
        return TuningOptions(features, self.seed, self.runs, self.restarts, mira)


class TuningReport(NamedTuple):
    """The weights, their score on the pool, the score at the start, and every run's weights and score.

    Scores are the metric's, higher is better (TER is negative). ``note`` says why nothing was searched, if so.
    """

    weights: Weights
    score: float
    score_at_start: float
    runs: tuple[tuple[Weights, float], ...]
    note: str = ""

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


_Tuner = Callable[[NbestPool, Floats, _Mask, TuningOptions], Tuned]

TUNERS: dict[str, _Tuner] = {
    "mert": lambda pool, start, tuned, options: tune_mert(
        pool, start, tuned=tuned, seed=options.seed, restarts=options.restarts
    ),
    "mira": lambda pool, start, tuned, options: tune_mira(
        pool, start, tuned=tuned, seed=options.seed, options=options.mira
    ),
    "pro": lambda pool, start, tuned, options: tune_pro(pool, start, tuned=tuned, seed=options.seed),
}


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


def search(pool: NbestPool, start: Start | None, options: TuningOptions, *, tuner: str = "mert") -> Search:
    """Run a tuner with several seeds; L1 norm of each result is 1.

    ``start`` maps names to weights; names that it lacks begin at 0. Without it all tuned ones begin equal,
    the others at 0; MIRA begins at 0. Raises WiringError where start weights or the names of ``options.features``
    do not fit the list, ConfigError for a number of runs, a seed or restarts that cannot be.
    """
    if options.runs < 1 or options.seed < 0 or options.restarts < 0:
        raise ConfigError("runs must be at least 1, seed and restarts at least 0")
    tuned = _tuned_columns(pool, options.features)
    weights = _start(pool, start, tuned, tuner)
    begun = Tuned(weights, pool.score(weights))
    note = _why_not(pool, tuned)
    return Search(begun, (begun,) if note else tuple(_runs(pool, weights, tuned, options, tuner)), note)


def tune(pool: NbestPool, start: Start | None, options: TuningOptions, *, tuner: str = "mert") -> TuningReport:
    """The best of what ``search`` finds; raises as it."""
    found = search(pool, start, options, tuner=tuner)
    return report_of_search(pool, found, found.best)


def report_of_search(pool: NbestPool, found: Search, result: Tuned) -> TuningReport:
    """A report of a search, with this result."""
    runs = tuple((_by_name(pool, run.weights), run.score) for run in found.runs)
    return TuningReport(_by_name(pool, result.weights), result.score, found.start.score, runs, found.note)


def _runs(pool: NbestPool, start: Floats, tuned: _Mask, options: TuningOptions, tuner: str) -> list[Tuned]:
    seeds = range(options.seed, options.seed + options.runs)
    return [TUNERS[tuner](pool, start, tuned, options._replace(seed=seed)) for seed in seeds]


def report_of(pool: NbestPool, weights: Floats, *, note: str) -> TuningReport:
    """A report of weights (in the order of the columns) that were not searched for; ``note`` says why."""
    result = Tuned(weights, pool.score(weights))
    return report_of_search(pool, Search(result, (result,), note), result)


def begin_with(pool: NbestPool, start: Start | None) -> Floats:
    """The weights with which tuning of all features begins."""
    return _start(pool, start, _tuned_columns(pool, None), "mert")


def ablate(
    pool: NbestPool, start: Start | None, options: TuningOptions, *, tuner: str = "mert"
) -> dict[str, tuple[float, ...]]:
    """For every tuned dense feature the scores that all runs reach without it, tuned again with their seeds."""
    tuned = _tuned_columns(pool, options.features)
    weights = _start(pool, start, tuned, tuner)
    names = np.array([column.name for column in pool.columns])
    found: dict[str, tuple[float, ...]] = {}
    for name in dict.fromkeys(names[: pool.dense][tuned[: pool.dense]].tolist()):
        searched = tuned & (names != name)
        if searched.any():
            begun = _without(weights, names == name, tuner)
            found[name] = tuple(run.score for run in _runs(pool, begun, searched, options, tuner))
    return found


def _without(weights: Floats, feature: _Mask, tuner: str) -> Floats:
    """Start weights with 0 for the columns of a feature."""
    without = np.where(feature, 0.0, weights)
    return without if without.any() or tuner == "mira" else np.where(feature, 0.0, 1.0)


class Loss(NamedTuple):
    """How much of the score is lost without a feature: mean and standard deviation over runs, seed by seed."""

    mean: float
    deviation: float


def losses(report: TuningReport, ablation: Mapping[str, Sequence[float]]) -> dict[str, Loss]:
    """What each feature is worth; ``ablation`` has the scores without it, of runs with the seeds of the report's."""
    found = {}
    for name, scores in ablation.items():
        lost = [whole - without for whole, without in zip(report.scores, scores, strict=True)]
        found[name] = Loss(statistics.fmean(lost), statistics.stdev(lost) if len(lost) > 1 else 0.0)
    return found


def start_weights(pool: NbestPool, start: Mapping[str, Sequence[float]]) -> Floats:
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


def _why_not(pool: NbestPool, tuned: _Mask) -> str:
    """Why there is nothing to search, or nothing."""
    if pool.padding.shape[1] == 1:
        return "every list has one hypothesis: there is nothing to choose, the start weights stay"
    if not (tuned & pool.varying()).any():
        return "the features are equal within every list: there is nothing to tune, the start weights stay"
    real = np.isfinite(pool.padding)[:, :, None]
    if not ((pool.statistics != pool.statistics[:, :1]) & real).any():
        return "all hypotheses of a list match the references equally: there is nothing to gain, the start weights stay"
    return ""


def _by_name(pool: NbestPool, weights: Floats) -> Weights:
    """Weights by the names of the features; sparse ones without a weight are left out."""
    table: dict[str, list[float]] = {}
    for place, (column, weight) in enumerate(zip(pool.columns, weights.tolist(), strict=True)):
        if place < pool.dense or weight != 0.0:
            table.setdefault(column.name, []).append(weight)
    return {name: tuple(values) for name, values in table.items()}
