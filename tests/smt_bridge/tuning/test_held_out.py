"""Tuning falls back to the best single system where it only fits noise; folds choose how far back to the start."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from smt_bridge.errors import WiringError
from smt_bridge.metrics.metric import BLEU, TER
from smt_bridge.tuning import held_out as tuning_held_out
from smt_bridge.tuning.held_out import _Fold, _is_as_good, _validation, tune_by_plan
from smt_bridge.tuning.options import TuningOptions
from smt_bridge.tuning.plan import RIDGES, TuningPlan
from smt_bridge.tuning.pool import Column, NbestPool, Tuned
from smt_bridge.tuning.tune import Search, TuningReport, start_weights, tune

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


def tuned(pool: NbestPool, *baselines: str, **options: Any) -> TuningReport:
    """The weights, and what the folds say of them beside the baselines."""
    return tune_by_plan(pool, TuningPlan(None, TuningOptions(**{"folds": 5, "runs": 1} | options), baselines))


def held_out(judged: TuningReport) -> float:
    assert judged.validation is not None
    return judged.validation.held_out


def test_noise_falls_back_to_the_better_system() -> None:
    generator = np.random.default_rng(3)
    good = generator.integers(0, 9, (SENTENCES, ENTRIES))
    good[:, 0], good[:, 1] = 5, 6
    noise = [generator.normal(size=(SENTENCES, ENTRIES)) for _ in range(12)]
    names = ("FirstA0", "FirstB0", *(f"N{number}" for number in range(12)))
    pool = pool_of(first(0), first(1), *noise, good=good, names=names)
    judged = tuned(pool, "FirstA0", "FirstB0", restarts=5, folds=4)
    assert judged.kept == judged.best_system == "FirstB0"
    assert held_out(judged) < judged.systems["FirstB0"]
    assert judged.weights["FirstB0"] == (1.0,)
    assert all(not any(values) for name, values in judged.weights.items() if name != "FirstB0")
    assert judged.score == judged.systems["FirstB0"]


def test_a_system_as_good_as_the_tuned_weights_does_not_replace_them() -> None:
    good = np.tile(np.arange(ENTRIES, 0, -1), (SENTENCES, 1))
    judged = tuned(pool_of(first(0), good, good=good, names=("FirstA0", "Good0")), "FirstA0", restarts=0)
    assert held_out(judged) == judged.score == judged.systems["FirstA0"]
    assert judged.kept is None and any(judged.weights["Good0"])


@pytest.mark.parametrize("tuner", ["mert", "mira", "pro"])
def test_what_helps_is_kept_and_never_below_a_single_system(tuner: str) -> None:
    generator = np.random.default_rng(4)
    good = generator.integers(1, 10, (SENTENCES, ENTRIES))
    judge = good + generator.normal(size=good.shape) * 0.3
    pool = pool_of(first(0), first(1), judge, good=good, names=("FirstA0", "FirstB0", "Judge0"))
    judged = tuned(pool, "FirstA0", "FirstB0", restarts=5, tuner=tuner)
    assert judged.kept is None
    assert judged.score > max(judged.systems.values())
    assert held_out(judged) > max(judged.systems.values())


def test_there_are_no_more_folds_than_sentences() -> None:
    good = np.tile(np.arange(1, ENTRIES + 1), (SENTENCES, 1))
    pool = pool_of(first(0), good, good=good, names=("FirstA0", "Good0"))
    validation = tuned(pool.of_sentences(np.arange(3)), "FirstA0", restarts=0).validation
    assert validation is not None and validation.folds == 3
    with pytest.raises(WiringError, match=r"^cross-validation needs at least two sentences and two folds$"):
        tuned(pool.of_sentences(np.arange(1)), "FirstA0", restarts=0)


def test_an_indicator_that_is_not_there_is_refused() -> None:
    good = np.ones((SENTENCES, ENTRIES), dtype=np.int64)
    said = "the list has no feature {} of one value; `smt-bridge add-features` makes one for each of several lists"
    for names, missing, known in ((("FirstA0",), "FirstC0", "FirstA0"), (("A", "B"), "FirstA0", "none")):
        pool = pool_of(*[first(0)] * len(names), good=good, names=names)
        with pytest.raises(WiringError) as caught:
            tuned(pool, missing)
        assert str(caught.value) == f"{said.format(missing)} (here: {known})"


def test_a_baseline_that_is_not_tuned_has_no_weight() -> None:
    """The columns of the systems are for the comparison; only the tuned ones decide."""
    generator = np.random.default_rng(4)
    good = generator.integers(1, 10, (SENTENCES, ENTRIES))
    judge = good + generator.normal(size=good.shape) * 3
    pool = pool_of(first(0), first(1), judge, good=good, names=("FirstA0", "FirstB0", "Judge0"))
    judged = tuned(pool, "FirstA0", "FirstB0", restarts=5, features=("Judge0",))
    assert judged.kept is None
    assert judged.weights == {"FirstA0": (0.0,), "FirstB0": (0.0,), "Judge0": (1.0,)}


def noisy(sentences: int) -> NbestPool:
    """Many weak judges, as of a few sentences: equal weights are the best for others, too."""
    generator = np.random.default_rng(11)
    good = generator.integers(1, 10, (SENTENCES, ENTRIES))
    judges = [good + generator.normal(size=good.shape) * 9 for _ in range(30)]
    pool = pool_of(*judges, good=good, names=tuple(f"J{number}" for number in range(30)))
    return pool.of_sentences(np.arange(sentences))


def test_folds_choose_how_far_weights_go_back_to_the_start() -> None:
    """The share is the best on held-out sentences, and other sentences gain from it."""
    pool, options = noisy(SENTENCES), TuningOptions(runs=1, restarts=5)
    inside, outside = pool.of_sentences(np.arange(20)), pool.of_sentences(np.arange(20, SENTENCES))
    plain = tune_by_plan(inside, TuningPlan(None, options))
    damped = tune_by_plan(inside, TuningPlan(None, options.model_copy(update={"folds": 4}), ridges=RIDGES))
    assert plain.ridge == 0.0 and plain.validation is None
    assert damped.ridge > 0.0
    assert damped.score_at_start <= damped.score <= plain.score
    assert damped.scores == plain.scores
    scores = [outside.score(start_weights(outside, judged.weights)) for judged in (plain, damped)]
    assert scores[1] > scores[0] + 1


def test_the_result_is_the_mean_of_the_runs_where_folds_show_no_gain() -> None:
    generator = np.random.default_rng(4)
    good = generator.integers(1, 10, (SENTENCES, ENTRIES))
    noise = generator.normal(size=good.shape) * 4
    pool = pool_of(good, noise, good=good, names=("Good0", "Noise0"))
    judged = tune_by_plan(pool, TuningPlan(None, TuningOptions(restarts=5, folds=4), ridges=RIDGES))
    assert judged.ridge == 0.0
    runs = np.array([[*weights["Good0"], *weights["Noise0"]] for weights, _ in judged.runs])
    assert judged.runs == tune(pool, None, TuningOptions(restarts=5)).runs
    spreads = np.array([np.sqrt(each.var(axis=1).mean()) for each in (good, noise)])
    mean = (runs / np.abs(runs * spreads).sum(axis=1, keepdims=True)).mean(axis=0)
    found = np.array([*judged.weights["Good0"], *judged.weights["Noise0"]])
    assert found == pytest.approx(mean / np.abs(mean).sum())


def test_where_nothing_is_tuned_the_better_system_is_still_the_result() -> None:
    good = np.tile(np.arange(ENTRIES), (SENTENCES, 1))
    judged = tuned(
        pool_of(first(0), first(2), first(0) * 0, good=good, names=("FirstA0", "FirstB0", "N0")),
        "FirstA0",
        "FirstB0",
        features=("N0",),
    )
    assert judged.note.startswith("the features are equal within every list") and judged.kept == "FirstB0"


@pytest.mark.parametrize(("score", "ridge"), [(20.0, 0.5), (19.9, 0.0)])
def test_a_share_that_is_worse_than_the_start_on_the_tuned_sentences_is_not_taken(
    score: float, ridge: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    pool = noisy(SENTENCES)
    start, run, damped = (Tuned(np.ones(30), number) for number in (20.0, 50.0, score))
    monkeypatch.setattr(tuning_held_out, "_tuned", lambda *_: (Search(start, (run,), ""), [run, damped]))
    table = np.stack([counts(4), counts(9)])
    monkeypatch.setattr(tuning_held_out, "_judged_fold", lambda *_: _Fold([1.0, 2.0], table))
    assert tune_by_plan(pool, TuningPlan(None, TuningOptions(folds=2), ridges=(0.0, 0.5))).ridge == ridge


@pytest.mark.parametrize(("better", "by", "as_good"), [(7, 9, False), (9, 7, True), (0, 0, True)])
def test_nearly_all_samples_are_95_of_100(better: int, by: int, as_good: bool) -> None:
    """Of sentences of which some are better, all others worse by 1; P by the binomial distribution: .937, .964, 1."""
    edits = np.where(np.arange(40) < better, -by, min(by, 1)) + 50
    one, other = (np.stack([found, np.full(40, 100)], axis=1) for found in (edits, np.full(40, 50)))
    assert _is_as_good(noisy(2)._replace(metric=TER), one, other) == as_good


def counts(matching: int) -> np.ndarray:
    """Of half of the sentences, (S / 2, 10): so many matching words of ten."""
    one = [*np.maximum(matching - np.arange(4), 0), 10, 9, 8, 7, 10, 10]
    return np.tile(np.array(one, dtype=np.int64), (SENTENCES // 2, 1))


def test_no_fold_has_a_part_in_the_choice_of_its_own_share() -> None:
    """By both folds the second share is better, by the second fold alone the first one."""
    folds = [
        _Fold([1.0, 2.0], np.stack([counts(4), counts(9)])),
        _Fold([3.0, 4.0], np.stack([counts(8), counts(7)])),
    ]
    statistics = np.zeros((SENTENCES, 1, 10), dtype=np.int64)
    pool = NbestPool((Column("A", 0),), np.zeros((1, SENTENCES, 1)), statistics, np.zeros((SENTENCES, 1)))
    validation, held_out = _validation(pool, folds)
    assert (held_out[0::2] == counts(4)).all() and (held_out[1::2] == counts(7)).all()
    assert validation.tuned == (1.0 + 4.0) / 2
    assert validation.held_out == float(BLEU.score(held_out.sum(axis=0)))
