"""Start weights, several seeds, and lists with nothing to tune."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError

from smt_bridge.errors import WiringError
from smt_bridge.tuning.held_out import Judged, Plan, tune_by_plan
from smt_bridge.tuning.options import TuningOptions
from smt_bridge.tuning.pool import Column, Floats, NbestPool
from smt_bridge.tuning.run import as_json
from smt_bridge.tuning.tune import tune


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


@pytest.mark.parametrize("options", [{"runs": 0}, {"seed": -1}, {"restarts": -1}, {"tuner": "mirra"}])
def test_options_that_cannot_be_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(ValidationError, match=next(iter(options))):
        TuningOptions(**options)


def test_start_of_another_system_is_refused() -> None:
    with pytest.raises(WiringError, match="2 values in the list but 1"):
        tune(pool_of(GOOD), {"A": (1.0,)}, TuningOptions())
    with pytest.raises(WiringError, match="another system"):
        tune(pool_of(GOOD), {"C": (1.0,)}, TuningOptions())


def test_unknown_name_among_features_is_refused() -> None:
    with pytest.raises(WiringError, match=r"no feature X; it has A, B"):
        tune(pool_of(GOOD), None, TuningOptions(features=("A", "X")))


def bigger() -> NbestPool:
    generator = np.random.default_rng(4)
    features = generator.normal(size=(3, 30, 6))
    statistics = np.zeros((30, 6, 10), dtype=np.int64)
    quality = np.clip(np.round(4 + features[0] + 0.3 * features[1]), 0, 9).astype(np.int64)
    for order in range(4):
        statistics[..., order] = np.maximum(quality - order, 0)
        statistics[..., 4 + order] = 10 - order
    statistics[..., 8:] = 10
    columns = (Column("A", 0), Column("B", 0), Column("C", 0))
    return NbestPool(columns, features, statistics, np.zeros((30, 6)))


@pytest.mark.parametrize("tuner", ["mert", "mira", "pro"])
def test_cross_validation_scores_what_was_held_out(tuner: str) -> None:
    found = tune_by_plan(bigger(), Plan(None, TuningOptions.of([tuner, "folds=3"]))).validation
    assert found is not None
    assert found.folds == 3
    assert found.held_out <= found.tuned + 2.0
    with pytest.raises(WiringError, match="two"):
        tune_by_plan(bigger().of_sentences(np.array([0])), Plan(options=TuningOptions(folds=3)))


def test_the_report_is_json_with_all_runs() -> None:
    report = tune(bigger(), None, TuningOptions(runs=2, restarts=1))
    found = json.loads(json.dumps(as_json(Judged(report), tuner="mert", metric="bleu")))
    assert found["score"] == max(run["score"] for run in found["runs"])
    assert set(found["weights"]) == {"A", "B", "C"}
    assert found["cross_validation"] is None
