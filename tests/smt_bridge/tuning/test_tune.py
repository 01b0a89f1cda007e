"""Start weights, several seeds, and lists with nothing to tune."""

from __future__ import annotations

import json
import statistics
from typing import Any

import numpy as np
import pytest

from smt_bridge.errors import WiringError
from smt_bridge.tuning.options import TuningOptions
from smt_bridge.tuning.plan import TuningPlan
from smt_bridge.tuning.pool import Column, Floats, NbestPool, Tuned
from smt_bridge.tuning.run import _say_report, as_json
from smt_bridge.tuning.tune import TUNERS, CrossValidation, TuningReport, search, tune


def pool_of(features: list[list[list[float]]], *, differ: bool = True) -> NbestPool:
    """Features (D, S, L); of every list only the last entry matches anything, unless all are equal."""
    table: Floats = np.array(features)
    statistics = np.zeros((*table.shape[1:], 10), dtype=np.int64)
    statistics[..., 4:] = [5, 4, 3, 2, 5, 5]
    statistics[:, -1 if differ else slice(None), :4] = [5, 4, 3, 2]
    columns = (Column("A", 0), Column("A", 1), Column("B", 0))[: len(table)]
    return NbestPool(columns, table, statistics, np.zeros(table.shape[1:]))


GOOD = [[[1.0, 2.0], [0.0, 1.0]], [[0.0, 0.0], [1.0, 0.0]], [[3.0, 0.0], [2.0, 0.0]]]


def test_best_of_all_runs_is_kept() -> None:
    report = tune(pool_of(GOOD), {"A": (0.0, 0.0), "B": (1.0,)}, TuningOptions(runs=2, restarts=4))
    assert report.score_at_start == 0.0
    assert report.score == pytest.approx(100.0)
    assert report.score == max(report.scores)
    assert len(report.runs) == 2
    assert (report.mean, report.deviation) == (statistics.fmean(report.scores), statistics.stdev(report.scores))
    assert set(report.weights) == {"A", "B"}
    assert len(report.weights["A"]) == 2
    assert sum(abs(weight) for values in report.weights.values() for weight in values) == pytest.approx(1.0, abs=1e-5)


@pytest.mark.parametrize(
    ("pool", "said"),
    [
        (pool_of([[[1.0], [2.0]]]), "every list has one hypothesis: there is nothing to choose"),
        (pool_of([[[1.0, 1.0], [2.0, 2.0]]]), "the features are equal within every list: there is nothing to tune"),
        (pool_of([[[1.0, 5.0], [2.0, 3.0]]], differ=False),
         "all hypotheses of a list match the references equally: there is nothing to gain"),
    ],
)  # fmt: skip
def test_nothing_to_tune_keeps_the_start_with_a_note(pool: NbestPool, said: str) -> None:
    report = tune(pool, {"A": (0.7,)}, TuningOptions())
    assert report.note == f"{said}, the start weights stay"
    assert report.weights == {"A": (0.7,)}


def test_start_of_another_system_is_refused() -> None:
    with pytest.raises(WiringError, match=r"^feature A has 2 values in the list but 1 start weight$"):
        tune(pool_of(GOOD), {"A": (1.0,)}, TuningOptions())
    said = "^the start weights give no feature of the list a weight; are they of another system[?]$"
    for start in ({"C": (1.0,)}, {"B": (0.0,)}):
        with pytest.raises(WiringError, match=said):
            tune(pool_of(GOOD), start, TuningOptions())


def test_unknown_name_among_features_is_refused() -> None:
    with pytest.raises(WiringError, match=r"^the list has no feature X, Y; it has A, B$"):
        tune(pool_of(GOOD), None, TuningOptions(features=("A", "X", "Y")))


def test_without_start_weights_the_tuned_columns_begin_equal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every run has a seed of its own."""
    begun = []

    def tuner(pool: NbestPool, start: Floats, options: TuningOptions, searched: object) -> Tuned:
        begun.append((start.tolist(), options.seed))
        return Tuned(start * options.seed, 5.0)

    monkeypatch.setitem(TUNERS, "mert", tuner)
    assert search(pool_of(GOOD), None, TuningOptions(features=("A",), seed=7)).best.weights.tolist() == [3.5, 3.5, 0]
    assert begun == [([0.5, 0.5, 0.0], seed) for seed in (7, 8, 9)]


@pytest.mark.parametrize(("scores", "best"), [((3.0, 5.0, 4.0), 8), ((5.0, 5.0, 4.0), 7)])
def test_the_run_that_scores_best_is_taken_and_of_equal_ones_the_first(
    monkeypatch: pytest.MonkeyPatch, scores: tuple[float, ...], best: int
) -> None:
    def tuner(pool: NbestPool, start: Floats, options: TuningOptions, searched: object) -> Tuned:
        return Tuned(start * options.seed, scores[options.seed - 7])

    monkeypatch.setitem(TUNERS, "mert", tuner)
    found = search(pool_of(GOOD), None, TuningOptions(features=("A",), seed=7)).best
    assert (found.weights.tolist(), found.score) == ([best / 2, best / 2, 0.0], 5.0)


@pytest.mark.parametrize("tuner", ["mert", "mira", "pro"])
def test_features_that_are_not_named_have_no_weight(tuner: str) -> None:
    report = tune(pool_of(GOOD), None, TuningOptions(tuner=tuner, features=("B",), runs=1))
    assert report.weights["A"] == (0.0, 0.0) and report.weights["B"] != (0.0,)


def test_the_report_is_json_with_all_runs() -> None:
    validation = CrossValidation(5, 31.5, 28.0)
    report = TuningReport({"A": (1.0,)}, 31.0, 20.0, RUNS, "so", 0.15, validation, SYSTEMS, None)
    expected: dict[str, Any] = {
        "tuner": "mert", "metric": "bleu", "weights": {"A": [1.0]}, "score": 31.0, "score_at_start": 20.0, "mean": 30.5,
        "deviation": pytest.approx(0.5**0.5), "note": "so", "ridge": 0.15,
        "runs": [{"score": 30.0, "weights": {"A": [1.0]}}, {"score": 31.0, "weights": {"A": [0.5]}}],
        "cross_validation": {"folds": 5, "tuned": 31.5, "held_out": 28.0},
        "baselines": {"scores": SYSTEMS, "held_out": 28.0, "folds": 5, "kept": None, "best": "FirstB0"},
    }  # fmt: skip
    assert json.loads(json.dumps(as_json(report, tuner="mert", metric="bleu"))) == expected
    alone = expected | {"deviation": 0.0, "mean": 30.0, "runs": expected["runs"][:1], "baselines": None}
    report = report._replace(runs=RUNS[:1], systems={})
    assert as_json(report, tuner="mert", metric="bleu") == alone
    plain = as_json(report._replace(validation=None), tuner="mert", metric="bleu")
    assert plain == alone | {"cross_validation": None}


RUNS = (({"A": (1.0,)}, 30.0), ({"A": (0.5,)}, 31.0))
SYSTEMS = {"FirstA0": 30.5, "FirstB0": 32.25}
SPREAD = "2 runs: mean 30.50, standard deviation 0.71"


@pytest.mark.parametrize(
    ("report", "said"),
    [
        (
            TuningReport({"A": (1.0,)}, 31.0, 20.0, RUNS, "", 0.15, CrossValidation(5, 31.5, 28.0), SYSTEMS, None),
            [
                "tuned A, B; the other columns keep their start weight or 0",
                f"BLEU 20.00 at the start, 31.00 tuned; {SPREAD}",
                "cross-validation, 5 folds: 31.50 on the tuned parts, 28.00 on those held out",
                "the weights go back 15% of the way to the start: held-out sentences gain from it",
                "FirstA0 alone 30.50, FirstB0 alone 32.25",
            ],
        ),
        (
            TuningReport({"A": (1.0,)}, 32.25, 20.0, RUNS, "", systems=SYSTEMS, kept="FirstB0"),
            [
                "tuned A, B; the other columns keep their start weight or 0",
                f"BLEU 20.00 at the start, 32.25 by FirstB0 alone; {SPREAD}",
                "FirstA0 alone 30.50, FirstB0 alone 32.25",
                "note: FirstB0 alone is better, on these or on held-out sentences: its weights were written",
            ],
        ),
        (TuningReport({"A": (1.0,)}, 20.0, 20.0, RUNS[:1], "there is nothing to tune"),
         ["note: there is nothing to tune", "BLEU 20.00 at the start, 20.00 tuned"]),
    ],
)  # fmt: skip
def test_what_was_found_is_said(report: TuningReport, said: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    _say_report(report, TuningPlan(options=TuningOptions(features=("A", "B"))), "bleu")
    assert capsys.readouterr().err.splitlines() == [f"tune: {line}" for line in said]
