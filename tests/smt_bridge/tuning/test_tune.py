"""Start weights, several seeds, and lists with nothing to tune."""

from __future__ import annotations

import json
import statistics

import numpy as np
import pytest

from smt_bridge.errors import WiringError
from smt_bridge.tuning.options import TuningOptions
from smt_bridge.tuning.plan import TuningPlan
from smt_bridge.tuning.pool import Column, Floats, NbestPool
from smt_bridge.tuning.run import _say_report, as_json
from smt_bridge.tuning.tune import CrossValidation, TuningReport, tune


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
        (pool_of([[[1.0], [2.0]]]), "one hypothesis"),
        (pool_of([[[1.0, 1.0], [2.0, 2.0]]]), "features are equal"),
        (pool_of([[[1.0, 5.0], [2.0, 3.0]]], differ=False), "nothing to gain"),
    ],
)
def test_nothing_to_tune_keeps_the_start_with_a_note(pool: NbestPool, said: str) -> None:
    report = tune(pool, {"A": (0.7,)}, TuningOptions())
    assert said in report.note
    assert report.weights == {"A": (0.7,)}


def test_start_of_another_system_is_refused() -> None:
    with pytest.raises(WiringError, match="2 values in the list but 1"):
        tune(pool_of(GOOD), {"A": (1.0,)}, TuningOptions())
    with pytest.raises(WiringError, match="another system"):
        tune(pool_of(GOOD), {"C": (1.0,)}, TuningOptions())


def test_unknown_name_among_features_is_refused() -> None:
    with pytest.raises(WiringError, match=r"no feature X; it has A, B"):
        tune(pool_of(GOOD), None, TuningOptions(features=("A", "X")))


@pytest.mark.parametrize("tuner", ["mert", "mira", "pro"])
def test_features_that_are_not_named_have_no_weight(tuner: str) -> None:
    report = tune(pool_of(GOOD), None, TuningOptions(tuner=tuner, features=("B",), runs=1))
    assert report.weights["A"] == (0.0, 0.0) and report.weights["B"] != (0.0,)


def test_the_report_is_json_with_all_runs() -> None:
    report = tune(pool_of(GOOD), None, TuningOptions(runs=2, restarts=1))
    found = json.loads(json.dumps(as_json(report, tuner="mert", metric="bleu")))
    assert found["score"] == max(run["score"] for run in found["runs"])
    assert set(found["weights"]) == {"A", "B"}
    assert found["cross_validation"] is None


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
        (
            TuningReport({"A": (1.0,)}, 20.0, 20.0, RUNS[:1], "there is nothing to tune"),
            ["note: there is nothing to tune", "BLEU 20.00 at the start, 20.00 tuned"],
        ),
    ],
)
def test_what_was_found_is_said(report: TuningReport, said: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    _say_report(report, TuningPlan(options=TuningOptions(features=("A", "B"))), "bleu")
    assert capsys.readouterr().err.splitlines() == [f"tune: {line}" for line in said]
