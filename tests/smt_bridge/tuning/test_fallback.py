"""Tuning falls back to the best single system where it only fits noise; selection leaves noise out."""

from __future__ import annotations

import numpy as np
import pytest

from smt_bridge.errors import WiringError
from smt_bridge.tuning.fallback import tune_with_fallback
from smt_bridge.tuning.pool import Column, Floats, NbestPool, Tuned
from smt_bridge.tuning.select import select_features
from smt_bridge.tuning.tune import TUNERS, TuningOptions, ablate

SENTENCES, ENTRIES = 40, 8


def pool_of(*features: np.ndarray, good: np.ndarray, names: tuple[str, ...]) -> NbestPool:
    """``good`` (S, L) from 0 to 10 is the number of matching words of ten."""
    statistics = np.zeros((SENTENCES, ENTRIES, 10), dtype=np.int64)
    statistics[..., :4] = np.maximum(good[..., None] - np.arange(4), 0)
    statistics[..., 4:] = [10, 9, 8, 7, 10, 10]
    columns = tuple(Column(name, 0) for name in names)
    return NbestPool(columns, np.stack(features).astype(np.float64), statistics, np.zeros(good.shape))


def first(place: int) -> np.ndarray:
    values = np.zeros((SENTENCES, ENTRIES))
    values[:, place] = 1.0
    return values


def test_noise_falls_back_to_the_better_system() -> None:
    generator = np.random.default_rng(3)
    good = generator.integers(2, 7, (SENTENCES, ENTRIES))
    good[:, 0], good[:, 1] = 5, 6
    noise = [generator.normal(size=(SENTENCES, ENTRIES)) for _ in range(12)]
    names = ("FirstA0", "FirstB0", *(f"N{number}" for number in range(12)))
    pool = pool_of(first(0), first(1), *noise, good=good, names=names)
    report, compared = tune_with_fallback(
        pool, None, TuningOptions(runs=1, restarts=5), indicators=["FirstA0", "FirstB0"], folds=4
    )
    assert compared.kept == compared.best == "FirstB0"
    assert compared.held_out <= compared.systems["FirstB0"]
    assert report.weights["FirstB0"] == (1.0,)
    assert all(not any(values) for name, values in report.weights.items() if name != "FirstB0")
    assert report.score == compared.systems["FirstB0"]


def test_what_changes_nothing_is_worth_nothing_beside_indicators_too() -> None:
    """Guarded tuning keeps the best of several starts; so does that without a feature."""
    generator = np.random.default_rng(2)
    good = generator.integers(2, 10, (SENTENCES, ENTRIES))
    good[:, 0] = np.maximum(good[:, 0], generator.integers(4, 10, SENTENCES))
    noise = [generator.normal(size=good.shape) * 0.3 + good * 0.05 for _ in range(3)]
    pool = pool_of(first(0), np.zeros(good.shape), *noise, good=good, names=("First0", "Constant0", "A", "B", "C"))
    options = TuningOptions(runs=1, restarts=0)
    report, _ = tune_with_fallback(pool, None, options, indicators=["First0"], folds=2)
    assert ablate(pool, None, options)["Constant0"][0] < report.scores[0] - 1
    assert ablate(pool, None, options, indicators=["First0"])["Constant0"] == report.scores


@pytest.mark.parametrize("tuner", ["mert", "mira", "pro"])
def test_what_helps_is_kept_and_never_below_a_single_system(tuner: str) -> None:
    generator = np.random.default_rng(4)
    good = generator.integers(1, 10, (SENTENCES, ENTRIES))
    judge = good + generator.normal(size=good.shape) * 0.3
    pool = pool_of(first(0), first(1), judge, good=good, names=("FirstA0", "FirstB0", "Judge0"))
    report, compared = tune_with_fallback(
        pool, None, TuningOptions(runs=1, restarts=5), indicators=["FirstA0", "FirstB0"], tuner=tuner
    )
    assert compared.kept is None
    assert report.score > max(compared.systems.values())
    assert compared.held_out > max(compared.systems.values())


def test_a_mean_of_runs_that_is_worse_than_a_system_falls_back_to_it(monkeypatch: pytest.MonkeyPatch) -> None:
    good = np.tile([5, 9, 9, 2, 1, 1, 1, 1], (SENTENCES, 1))
    judges = [np.tile(values, (SENTENCES, 1)) for values in ([0, 10, 0, 8, 0, 0, 0, 0], [0, 0, 10, 8, 0, 0, 0, 0])]
    pool = pool_of(first(0), *judges, good=good, names=("First0", "A", "B"))

    def one_of_both(pool: NbestPool, start: Floats, tuned: object, options: TuningOptions) -> Tuned:
        weights = np.array([[0.0, 1.0, 0.0], [0.0, 0.0, 1.0]])[options.seed % 2]
        return Tuned(weights, float(pool.metric.score(pool.best_statistics(weights))))

    monkeypatch.setitem(TUNERS, "mert", one_of_both)
    report, compared = tune_with_fallback(pool, None, TuningOptions(runs=2, keep="average"), indicators=["First0"])
    assert compared.held_out > compared.systems["First0"]
    assert min(report.scores) > compared.systems["First0"]
    assert (compared.kept, report.weights["First0"], report.score) == ("First0", (1.0,), compared.systems["First0"])


def test_there_are_no_more_folds_than_sentences() -> None:
    good = np.tile(np.arange(1, ENTRIES + 1), (SENTENCES, 1))
    pool = pool_of(first(0), good, good=good, names=("FirstA0", "Good0"))
    options = TuningOptions(runs=1, restarts=0)
    _, compared = tune_with_fallback(pool.of_sentences(np.arange(3)), None, options, indicators=["FirstA0"], folds=5)
    assert compared.folds == 3
    with pytest.raises(WiringError, match="at least two sentences"):
        tune_with_fallback(pool.of_sentences(np.arange(1)), None, options, indicators=["FirstA0"])


def test_an_indicator_that_is_not_there_is_refused() -> None:
    good = np.ones((SENTENCES, ENTRIES), dtype=np.int64)
    pool = pool_of(first(0), good=good, names=("FirstA0",))
    with pytest.raises(WiringError, match="no feature FirstC0 of one value"):
        tune_with_fallback(pool, None, TuningOptions(), indicators=["FirstC0"])


def test_selection_finds_what_helps_and_leaves_noise_out() -> None:
    generator = np.random.default_rng(5)
    good = generator.integers(1, 10, (SENTENCES, ENTRIES))
    halves = generator.normal(size=good.shape)
    features = [generator.normal(size=good.shape) for _ in range(3)]
    pool = pool_of(features[0], good + halves, features[1], -halves, features[2], good=good,
                   names=("N0", "Good0", "N1", "Other0", "N2"))  # fmt: skip
    steps: list[str] = []
    selection = select_features(
        pool, TuningOptions(), folds=4, least_gain=0.2, on_step=lambda step: steps.append(step.name)
    )
    assert selection.names[:2] == ("Good0", "Other0")
    assert len(selection.names) < 5
    assert steps == list(selection.names)
    assert set(selection.names) | set(selection.left_out) == {"N0", "Good0", "N1", "Other0", "N2"}
    scores = [step.held_out for step in selection.chosen]
    assert scores == sorted(scores)
    with pytest.raises(WiringError, match="no feature X"):
        select_features(pool, TuningOptions(features=["X"]))
