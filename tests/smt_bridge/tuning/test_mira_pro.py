"""MIRA and PRO: small pools whose best weights are known, and Moses' own files."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from smt_bridge.metrics.bleu import COLUMNS
from smt_bridge.metrics.metric import BLEU, TER
from smt_bridge.tuning.mert import Tuned
from smt_bridge.tuning.mira import tune_mira
from smt_bridge.tuning.pool import Column, NbestPool, pool_from_moses
from smt_bridge.tuning.pro import logistic_regression, sentence_scores, tune_pro

TUNERS = pytest.mark.parametrize("tune", [tune_mira, tune_pro])


def pool_of(columns: int = 3, *, sentences: int = 40, entries: int = 8, seed: int = 1) -> NbestPool:
    """A pool in which feature 0 is the quality itself, feature 1 its opposite with noise, others noise."""
    generator = np.random.default_rng(seed)
    quality = generator.integers(0, 9, (sentences, entries))
    statistics = np.zeros((sentences, entries, COLUMNS), dtype=np.int64)
    for order in range(4):
        statistics[..., order] = np.maximum(quality - order, 0)
        statistics[..., 4 + order] = 10 - order
    statistics[..., 8] = statistics[..., 9] = 10
    features = generator.normal(size=(columns, sentences, entries))
    features[0] = 0.01 * quality
    features[1] = -5.0 * quality + generator.normal(size=quality.shape)
    padding = np.zeros((sentences, entries))
    padding[::3, -1] = -np.inf
    return NbestPool(tuple(Column(f"F{index}", 0) for index in range(columns)), features, statistics, padding)


@TUNERS
def test_the_feature_that_tells_quality_gets_the_weight_and_the_oracle_is_reached(tune: type) -> None:
    pool = pool_of()
    start = np.array([0.2, 0.4, 0.4])
    found: Tuned = tune(pool, start)
    oracle = BLEU.score(pool.best_statistics(np.array([1.0, 0.0, 0.0])))
    assert found.score == pytest.approx(float(oracle), abs=0.5)
    assert found.score == float(BLEU.score(pool.best_statistics(found.weights)))
    assert np.abs(found.weights).sum() == pytest.approx(1.0, abs=1e-4)


@TUNERS
def test_the_result_is_never_worse_than_the_start_and_repeatable(tune: type) -> None:
    pool = pool_of(4, seed=3)
    for start in (np.array([1.0, 0, 0, 0]), np.array([0, 1.0, 0, 0]), np.array([0.1, -0.2, 0.3, 0.4])):
        first, again = tune(pool, start, seed=5), tune(pool, start, seed=5)
        assert first.score >= float(BLEU.score(pool.best_statistics(start)))
        assert (first.weights == again.weights).all()


@TUNERS
def test_columns_that_are_not_tuned_keep_their_proportion(tune: type) -> None:
    pool = pool_of(4)
    start = np.array([0.1, 0.1, 0.3, 0.6])
    found = tune(pool, start, tuned=np.array([True, True, False, False]))
    if found.weights[2] != 0:
        assert found.weights[3] / found.weights[2] == pytest.approx(2.0, rel=1e-4)


@TUNERS
def test_nothing_to_choose_leaves_the_start(tune: type) -> None:
    pool = pool_of()
    flat = pool._replace(features=np.zeros_like(pool.features))
    assert tune(flat, np.array([0.5, 0.25, 0.25])).weights.tolist() == [0.5, 0.25, 0.25]


@TUNERS
def test_other_metrics_are_tuned_too(tune: type) -> None:
    pool = pool_of()
    edits = 10 - pool.statistics[..., :1]
    with_ter = pool._replace(statistics=np.concatenate([edits, np.full_like(edits, 10)], axis=2), metric=TER)
    found = tune(with_ter, np.array([0.2, 0.4, 0.4]))
    assert found.score == pytest.approx(float(TER.score(with_ter.best_statistics(np.array([1.0, 0, 0])))), abs=1.0)


def test_logistic_regression_finds_the_maximum() -> None:
    generator = np.random.default_rng(2)
    examples, offsets = generator.normal(size=(60, 3)) + 0.3, generator.normal(size=60)
    found = logistic_regression(examples, offsets, prior=0.5)

    def objective(weights: np.ndarray) -> float:
        return float(-np.log1p(np.exp(-(examples @ weights + offsets))).sum() - 0.25 * weights @ weights)

    for step in np.eye(3) * 1e-3:
        assert objective(found) > objective(found + step)
        assert objective(found) > objective(found - step)


def test_sentence_bleu_adds_one_above_unigrams() -> None:
    counts = np.array([[2.0, 1, 0, 0, 4, 3, 2, 1, 4, 4]])
    precisions = [2 / 4, 2 / 4, 1 / 3, 1 / 2]
    assert sentence_scores(counts, BLEU)[0] == pytest.approx(100 * np.prod(precisions) ** 0.25)


def moses_pool(shared: Path) -> NbestPool:
    folder = shared / "moses" / "en-fr" / "mert"
    return pool_from_moses(str(folder / "run1.features.dat.gz"), str(folder / "run1.scores.dat.gz"))


def test_mira_reaches_what_kbmira_reached_on_its_own_files(shared: Path) -> None:
    pool = moses_pool(shared)
    lines = (shared / "moses" / "en-fr" / "mert" / "run1.kbmira.weights.txt").read_text().splitlines()
    theirs = np.array([float(line.split()[1]) for line in lines])
    reached = float(BLEU.score(pool.best_statistics(theirs)))
    assert reached == pytest.approx(56.5, abs=0.2)
    found = tune_mira(pool, np.full(len(theirs), 1 / len(theirs)))
    assert found.score >= max(56.5, reached)


def test_pro_comes_near_the_other_tuners(shared: Path) -> None:
    pool = moses_pool(shared)
    assert tune_pro(pool, np.full(len(pool.columns), 1 / len(pool.columns))).score > 55.9
