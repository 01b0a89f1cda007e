"""MIRA and PRO: small pools whose best weights are known, and Moses' own files."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from smt_bridge.errors import WiringError
from smt_bridge.metrics.bleu import COLUMNS, Counts
from smt_bridge.metrics.metric import BLEU, TER
from smt_bridge.nbest.entry import NbestEntry, NbestList
from smt_bridge.ordered_sum import ordered_sum
from smt_bridge.tuning import mira, pro
from smt_bridge.tuning.mert import tune_mert
from smt_bridge.tuning.moses_dat import pool_from_moses
from smt_bridge.tuning.options import TuningOptions
from smt_bridge.tuning.pool import NO_ROWS, Column, NbestPool, Tuned, pool_from_lists
from smt_bridge.tuning.pro import Examples, _examples, _pairs, logistic_regression, sentence_scores
from smt_bridge.tuning.tune import Search, report_of, tune

PLAIN = TuningOptions()


def tune_mira(pool: NbestPool, start: np.ndarray, options: TuningOptions = PLAIN) -> Tuned:
    return mira.tune_mira(pool, start, options, pool.varying())


def tune_pro(pool: NbestPool, start: np.ndarray, options: TuningOptions = PLAIN) -> Tuned:
    return pro.tune_pro(pool, start, options, pool.varying())


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
def test_the_feature_that_tells_quality_gets_the_weight_and_the_oracle_is_reached(tune: Callable[..., Tuned]) -> None:
    pool = pool_of()
    start = np.array([0.0, 0.0, 0.4])
    found = tune(pool, start)
    oracle = pool.score(np.array([1.0, 0.0, 0.0]))
    assert found.score == pytest.approx(oracle, abs=0.5)
    assert found.score == pool.score(found.weights)
    assert np.abs(found.weights).sum() == pytest.approx(1.0, abs=1e-4)


@TUNERS
def test_the_result_is_never_worse_than_the_start_and_repeatable(tune: Callable[..., Tuned]) -> None:
    pool = pool_of(4, seed=3)
    for start in (np.array([1.0, 0, 0, 0]), np.array([0, 1.0, 0, 0]), np.array([0.1, -0.2, 0.3, 0.4])):
        first, again = (tune(pool, start, TuningOptions(seed=5)) for _ in range(2))
        assert first.score >= pool.score(start)
        assert (first.weights == again.weights).all()


@pytest.mark.parametrize("tune", [mira.tune_mira, pro.tune_pro])
def test_columns_that_are_not_tuned_keep_their_proportion(tune: Callable[..., Tuned]) -> None:
    found = tune(pool_of(4), np.array([0.1, 0.1, 0.3, 0.6]), PLAIN, np.array([True, True, False, False]))
    if found.weights[2] != 0:
        assert found.weights[3] / found.weights[2] == pytest.approx(2.0, rel=1e-4)


@TUNERS
def test_other_metrics_are_tuned_too(tune: Callable[..., Tuned]) -> None:
    pool = pool_of()
    edits = 10 - pool.statistics[..., :1]
    with_ter = pool._replace(statistics=np.concatenate([edits, np.full_like(edits, 10)], axis=2), metric=TER)
    found = tune(with_ter, np.array([0.2, 0.4, 0.4]))
    assert found.score == pytest.approx(with_ter.score(np.array([1.0, 0, 0])), abs=1.0)


def test_logistic_regression_finds_the_maximum() -> None:
    generator = np.random.default_rng(2)
    examples, offsets = generator.normal(size=(60, 3)) + 0.3, generator.normal(size=60)
    found = logistic_regression(Examples(examples.T, offsets), prior=0.5)

    def objective(weights: np.ndarray) -> float:
        return float(-np.log1p(np.exp(-(examples @ weights + offsets))).sum() - 0.25 * weights @ weights)

    for step in np.eye(3) * 1e-3:
        assert objective(found) > objective(found + step)
        assert objective(found) > objective(found - step)


@pytest.mark.parametrize(
    ("counts", "precisions"),
    [
        ([2, 1, 0, 0, 4, 3, 2, 1, 4, 4], [2 / 4, 2 / 4, 1 / 3, 1 / 2]),
        ([1, 0, 0, 0, 1, 0, 0, 0, 1, 1], [1, 1, 1, 1]),
        ([0, 0, 0, 0, 1, 0, 0, 0, 1, 1], [0, 1, 1, 1]),
    ],
)
def test_sentence_scores_are_bleu_plus_one(counts: list[int], precisions: list[float]) -> None:
    """Lin and Och (2004) add one to the counts of the orders above the first, and to no other."""
    assert sentence_scores(np.array([counts]), BLEU)[0] == pytest.approx(100 * np.prod(precisions) ** 0.25)


def moses_pool(shared: Path) -> NbestPool:
    folder = shared / "moses" / "en-fr" / "mert"
    return pool_from_moses([str(folder / "run1.features.dat.gz")], [str(folder / "run1.scores.dat.gz")])


def test_mira_reaches_what_kbmira_reached_on_its_own_files_and_points_where_it_points(shared: Path) -> None:
    pool, folder = moses_pool(shared), shared / "moses" / "en-fr" / "mert"
    lines = (folder / "run1.kbmira.weights.txt").read_text().splitlines()
    theirs = np.array([float(line.split()[1]) for line in lines])
    reached = pool.score(theirs)
    assert reached == pytest.approx(56.5, abs=0.2)
    start = np.array([float(number) for number in (folder / "run1.init.opt").read_text().splitlines()[0].split()])
    found = tune_mira(pool, start)
    assert found.score >= max(56.5, reached)
    assert found.weights @ theirs / np.linalg.norm(found.weights) / np.linalg.norm(theirs) > 0.96


def test_pro_comes_near_the_other_tuners(shared: Path) -> None:
    pool = moses_pool(shared)
    assert tune_pro(pool, np.full(len(pool.columns), 1 / len(pool.columns))).score > 55.9


def plain_mira(pool: NbestPool, start: np.ndarray, options: TuningOptions) -> list[np.ndarray]:
    """The means after every pass, from Cherry & Foster's algorithm and kbmira's averaging, one number at a time."""
    weights, history = start.copy(), [start.copy()]
    background, means = np.ones(COLUMNS), []
    generator = np.random.default_rng(options.seed)
    for _ in range(options.passes):
        for sentence in generator.permutation(len(pool.padding)):
            rows = []
            for entry in np.flatnonzero(np.isfinite(pool.padding[sentence])):
                sums = background + pool.statistics[sentence, entry]
                gain = float(BLEU.score(sums)) / 100 * sums[9]
                rows.append((float(pool.features[:, sentence, entry] @ weights), gain, int(entry)))
            hope = max(rows, key=lambda row: row[0] + row[1])
            fear = max(rows, key=lambda row: row[0] - row[1])
            if hope[2] == fear[2] or hope[1] <= fear[1]:
                continue
            difference = pool.features[:, sentence, hope[2]] - pool.features[:, sentence, fear[2]]
            loss = hope[1] - fear[1] - (hope[0] - fear[0])
            if loss > 0:
                weights = weights + min(options.c, loss / float(difference @ difference)) * difference
                history.append(weights.copy())
            background = options.decay * background + pool.statistics[sentence, hope[2]]
        means.append(np.sum(history, axis=0) / max(len(history) - 1, 1))
    return means


def test_mira_is_the_algorithm_written_out() -> None:
    pool = pool_of(4, seed=7)
    pool = pool._replace(features=pool.features * np.array([30.0, 0.02, 1, 1])[:, None, None])
    start = np.array([0.0, 0.3, 0.2, 0.1])
    options = TuningOptions(passes=3)
    means = plain_mira(pool, start, options)
    scores = [pool.score(mean) for mean in means]
    best = means[int(np.argmax(scores))]
    found = tune_mira(pool, start, options)
    assert found.score == pytest.approx(max(scores))
    assert found.weights == pytest.approx(best / np.abs(best).sum(), abs=2e-6)


def test_where_model_and_gain_contradict_each_other_nothing_moves_and_without_a_start_it_begins_at_zero() -> None:
    pool = pool_of()
    oracle = pool.score(np.array([1.0, 0.0, 0.0]))
    start = np.array([0.2, 0.4, 0.4])
    assert tune_mira(pool, start).weights == pytest.approx(start)
    report = tune(pool, None, TuningOptions(runs=1, tuner="mira"))
    assert report.score == pytest.approx(oracle, abs=0.5)


def test_the_prior_of_pro_is_what_is_stated_with_both_directions() -> None:
    pool = pool_of(2, seed=9)
    searched = np.array([True, True])
    examples = _examples(pool, searched, np.where(np.isfinite(pool.padding), 0.0, -np.inf), np.random.default_rng(1))
    found = tune_pro(pool, np.array([0.0, 0.1])).weights
    both, labels = np.concatenate([examples.dense.T, -examples.dense.T]), np.repeat([1.0, -1.0], examples.size)
    weights = np.zeros(2)
    for _ in range(100):  # Newton on the likelihood of all examples of both directions, less |w|^2 / 2
        wrong = 1 / (1 + np.exp(both @ weights * labels))
        curvature = (both * (wrong * (1 - wrong))[:, None]).T @ both + np.eye(2)
        weights = weights + np.linalg.solve(curvature, both.T @ (labels * wrong) - weights) * 0.5
    expected = weights / pool.spreads()
    assert found == pytest.approx(expected / np.abs(expected).sum(), abs=2e-5)


def test_examples_of_pro_differ_by_five_points_and_are_fifty_a_sentence() -> None:
    pool = pool_of(2, sentences=4, entries=30, seed=5)
    better, worse = _pairs(pool, np.random.default_rng(1))
    scores = sentence_scores(pool.statistics.reshape(-1, COLUMNS), BLEU)
    assert (scores[better] - scores[worse] >= 5.0).all()
    assert np.bincount(better // 30).tolist() == np.bincount(worse // 30).tolist() == [50] * 4
    largest = [np.ptp(scores[sentence * 30 : sentence * 30 + 29 + (sentence % 3 != 0)]) for sentence in range(4)]
    assert [(scores[better] - scores[worse])[place * 50] for place in range(4)] == pytest.approx(largest)
    alike = pool._replace(statistics=np.broadcast_to(pool.statistics[:, :1], pool.statistics.shape))
    assert not _pairs(alike, np.random.default_rng(1))[0].size


def sparse_pool(columns: int = 3000, sentences: int = 60, entries: int = 10) -> NbestPool:
    """Lists in which some of very many sparse features tell the quality, and the dense one says little."""
    generator = np.random.default_rng(5)
    worth = generator.normal(size=columns)

    def named(chosen: np.ndarray) -> dict[str, tuple[float, ...]]:
        return {"Dense0": (float(generator.normal()),), **{f"s_{place}": (1.0,) for place in sorted(chosen)}}

    def count(group: NbestList) -> Counts:
        sparse = [
            {int(name[2:]): one.features[name][0] for name in one.features if "_" in name} for one in group.entries
        ]
        quality = [sum(worth[place] * value for place, value in row.items()) for row in sparse]
        totals = np.broadcast_to([13, 12, 11, 10], (entries, 4))
        ranks = np.argsort(np.argsort(quality))
        matches = np.minimum(ranks[:, None] + np.array([3, 2, 1, 0]), totals)
        return np.concatenate([matches, totals, np.full((entries, 2), 13)], axis=1)

    lists = [[named(generator.choice(columns, 6, replace=False)) for _ in range(entries)] for _ in range(sentences)]
    every = {"Dense0": (0.0,), **{f"s_{place}": (0.0,) for place in range(columns)}}
    lists[0][0] = every | lists[0][0]  # every column is there, in this order
    groups = (
        NbestList(sentence, [NbestEntry(sentence, b"", features, None, 1) for features in group])
        for sentence, group in enumerate(lists)
    )
    return pool_from_lists(((group, count(group)) for group in groups), path="list")


@TUNERS
def test_thousands_of_sparse_features_are_tuned(tune: Callable[..., Tuned]) -> None:
    pool = sparse_pool()
    assert pool.dense == 1 and len(pool.columns) == 3001
    start = np.zeros(3001)
    start[0] = 1.0
    options = TuningOptions(passes=20, c=0.1)
    found = tune(pool, start, options)
    best = pool.statistics[..., 0].argmax(axis=1)
    oracle = float(BLEU.score(pool.statistics[np.arange(len(best)), best].sum(axis=0)))
    assert found.score > 0.9 * oracle > 1.3 * pool.score(start)
    assert (tune(pool, start, options).weights == found.weights).all()


def test_a_sparse_feature_with_weight_keeps_all_its_values() -> None:
    features = {"a_b": (0.0, 2.0), "c_d": (3.0,), **{f"s_{number}": (1.0,) for number in range(600)}}
    groups = [
        NbestList(
            number, [NbestEntry(number, b"", one, None, 1) for one in ({"Dense0": (1.0,)}, {"Dense0": (0.0,)} | more)]
        )
        for number, more in enumerate([features, {}, {}])
    ]
    pool = pool_from_lists(((group, np.ones((2, 10))) for group in groups), path="list")
    weights = np.array([0.5 * (column.name == "a_b" and column.component == 1) for column in pool.columns])
    start = Tuned(weights, 1.0)
    assert pool.dense == 1
    assert report_of(pool, Search(start, (start,), ""), start).weights == {"Dense0": (0.0,), "a_b": (0.0, 0.5)}


def test_mert_says_how_many_values_it_tunes() -> None:
    pool = sparse_pool(sentences=20)
    start = np.full(len(pool.columns), 0.01)
    remedy = "use --tuner mira or --tuner pro, or name the features to tune with --features"
    with pytest.raises(WiringError, match=f"^MERT tunes up to 500 values, and there are 3001: {remedy}$"):
        tune_mert(pool, start, PLAIN, pool.varying())
    found = tune_mert(pool, start, PLAIN, np.arange(len(pool.columns)) == 0)
    assert (found.weights[1:] > 0).all()


def test_a_sparse_pool_scores_like_a_dense_one() -> None:
    pool = sparse_pool(40, sentences=5)
    wide = sparse_pool(600, sentences=5)
    assert pool.dense == 41 and wide.dense == 1
    generator = np.random.default_rng(1)
    weights = generator.normal(size=601)
    table = np.zeros((601, *wide.padding.shape))
    table[0] = wide.features[0]
    flat = table.reshape(601, -1)
    flat[wide.sparse.columns + 1, wide.sparse.rows] = wide.sparse.values
    dense = wide._replace(features=table, sparse=NO_ROWS)
    assert wide.scores(weights) == pytest.approx(dense.scores(weights))
    assert (wide.varying() == dense.varying()).all()
    some = np.array([3, 1])
    assert wide.of_sentences(some).scores(weights) == pytest.approx(dense.scores(weights)[some])


def test_an_ordered_sum_is_the_sum() -> None:
    values = np.random.default_rng(3).normal(size=(3, 1001))
    assert ordered_sum(values) == pytest.approx([math.fsum(row) for row in values], abs=1e-12)
    assert ordered_sum(values[:, :0]).tolist() == [0, 0, 0]
    assert ordered_sum(values.astype(np.float32)).dtype == np.float32


def test_a_start_of_zero_is_no_result() -> None:
    pool = pool_of()
    order = np.argsort(-pool.statistics[..., 0], axis=1, kind="stable")  # the first of every list is its best
    best_first = pool._replace(
        features=np.take_along_axis(pool.features, order[None], axis=2),
        statistics=np.take_along_axis(pool.statistics, order[..., None], axis=1),
        padding=np.zeros_like(pool.padding),
    )
    found = tune_mira(best_first, np.zeros(3))
    assert np.abs(found.weights).sum() == pytest.approx(1.0, abs=1e-4)
    assert found.score == pytest.approx(best_first.score(np.zeros(3)), abs=0.5)
