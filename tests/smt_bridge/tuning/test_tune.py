"""Start weights, several seeds, and lists with nothing to tune."""

from __future__ import annotations

import json
import statistics
from pathlib import Path

import numpy as np
import pytest

from nmt_core.base.errors import ConfigError
from smt_bridge.errors import WiringError
from smt_bridge.tuning.held_out import Judged, Plan, tune_by_plan
from smt_bridge.tuning.moses_dat import pool_from_moses
from smt_bridge.tuning.pool import Column, Floats, NbestPool
from smt_bridge.tuning.run import as_json
from smt_bridge.tuning.tune import TuningOptions, ablate, losses, report_of, tune
from tests.smt_bridge.tuning.dat_files import features_dat, scores_dat


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


@pytest.mark.parametrize("options", [TuningOptions(runs=0), TuningOptions(seed=-1), TuningOptions(restarts=-1)])
def test_options_that_cannot_be_are_refused(options: TuningOptions) -> None:
    with pytest.raises(ConfigError, match="runs must be at least 1, seed and restarts at least 0"):
        tune(pool_of(GOOD), None, options)


def test_start_of_another_system_is_refused() -> None:
    with pytest.raises(WiringError, match="2 values in the list but 1"):
        tune(pool_of(GOOD), {"A": (1.0,)}, TuningOptions())
    with pytest.raises(WiringError, match="another system"):
        tune(pool_of(GOOD), {"C": (1.0,)}, TuningOptions())


def test_unknown_name_among_features_is_refused() -> None:
    with pytest.raises(WiringError, match=r"no feature X; it has A, B"):
        tune(pool_of(GOOD), None, TuningOptions(features=["A", "X"]))


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
    found = tune_by_plan(bigger(), Plan(None, TuningOptions(restarts=2), tuner, folds=3)).validation
    assert found is not None
    assert found.folds == 3
    assert found.held_out <= found.tuned + 2.0
    with pytest.raises(WiringError, match="two"):
        tune_by_plan(bigger().of_sentences(np.array([0])), Plan(folds=3))


def test_ablation_shows_which_feature_matters() -> None:
    scores = ablate(bigger(), None, TuningOptions(runs=2, restarts=2))
    assert {len(each) for each in scores.values()} == {2}
    found = {name: statistics.fmean(each) for name, each in scores.items()}
    assert list(found) == ["A", "B", "C"]
    assert found["A"] < found["B"] - 1
    assert found["A"] < found["C"] - 1


def test_what_a_feature_is_worth_is_compared_seed_by_seed() -> None:
    report = report_of(bigger(), np.ones(3), note="")._replace(runs=(({}, 40.0), ({}, 42.0), ({}, 44.0)))
    found = losses(report, {"A": (39.0, 40.0, 41.0), "B": (40.0, 42.0, 44.0)})
    assert found == {"A": (2.0, 1.0), "B": (0.0, 0.0)}  # 1, 2 and 3 less; nothing
    assert losses(report._replace(runs=(({}, 40.0),)), {"A": (39.5,)}) == {"A": (0.5, 0.0)}
    content = as_json(Judged(report), tuner="mert", metric="bleu", ablation={"A": (39.0, 40.0, 41.0)})
    assert content["ablation"] == {"A": 40.0}
    assert content["ablation_loss"] == {"A": {"mean": 2.0, "deviation": 1.0}}


def test_the_report_is_json_with_all_runs() -> None:
    report = tune(bigger(), None, TuningOptions(runs=2, restarts=1))
    found = json.loads(json.dumps(as_json(Judged(report), tuner="mert", metric="bleu")))
    assert found["score"] == max(run["score"] for run in found["runs"])
    assert set(found["weights"]) == {"A", "B", "C"}
    assert found["cross_validation"] is None


def test_moses_files_come_back_as_they_went(tmp_path: Path) -> None:
    pool = bigger()
    (tmp_path / "f").write_bytes(b"".join(features_dat(pool)))
    (tmp_path / "s").write_bytes(b"".join(scores_dat(pool)))
    again = pool_from_moses(str(tmp_path / "f"), str(tmp_path / "s"))
    assert again.columns == pool.columns
    np.testing.assert_allclose(again.features, pool.features, rtol=1e-8)
    assert (again.statistics == pool.statistics).all()
