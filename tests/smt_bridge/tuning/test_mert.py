"""The line search against brute force, and the tuner against Moses' own."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from smt_bridge.metrics.bleu import REFERENCE_LENGTH, SYSTEM_LENGTH, bleu
from smt_bridge.metrics.metric import BLEU
from smt_bridge.tuning.envelope import cut_all, ends_of, first_cut
from smt_bridge.tuning.expected_bleu import ExpectedBleu
from smt_bridge.tuning.mert import _best_interval, _Search, tune_mert
from smt_bridge.tuning.moses_dat import pool_from_moses
from smt_bridge.tuning.options import TuningOptions
from smt_bridge.tuning.pool import Column, Floats, NbestPool, Tuned


def random_pool(seed: int, *, columns: int = 4, sentences: int = 40, entries: int = 12) -> NbestPool:
    """Make lists of unequal length, with matches that follow hidden weights."""
    generator = np.random.default_rng(seed)
    features = generator.normal(size=(columns, sentences, entries)).round(2)
    padding = np.where(np.arange(entries) < generator.integers(1, entries + 1, (sentences, 1)), 0.0, -np.inf)
    quality = np.tensordot(generator.normal(size=columns), features, 1) + generator.normal(size=(sentences, entries))
    rank = quality.argsort(axis=1).argsort(axis=1)
    totals = np.broadcast_to(np.arange(entries + 4, entries, -1), (sentences, entries, 4))
    lengths = np.full((sentences, entries, 2), entries + 4)
    matches = np.minimum(rank[..., None], totals)
    statistics = np.concatenate([matches, totals, lengths], axis=-1)
    return NbestPool(tuple(Column(f"F{index}", 0) for index in range(columns)), features, statistics, padding)


def test_counts_between_corners_of_one_point_are_not_scored() -> None:
    """Three hypotheses a, b, c of a sentence meet in one point; with c for b before b for a, counts are below 0."""
    a, b, c = (np.array([*[count] * 4, 4, 4, 4, 4, 7, 7]) for count in (1, 4, 2))
    corners = np.array([0.5, 0.5])
    for changes in ([b - a, c - b], [c - b, b - a]):
        _, score = _best_interval(a, corners, np.array(changes), BLEU)
        assert score == bleu(c) > bleu(a)


@pytest.mark.parametrize("digits", [0, 1, 9])
def test_envelope_is_the_maximum_everywhere(digits: int) -> None:
    generator = np.random.default_rng(digits)
    intercepts = generator.normal(size=(60, 12)).round(digits)
    slopes = generator.normal(size=(60, 12)).round(digits)
    intercepts[7, 3:] = -np.inf
    left, edges, points = first_cut(intercepts, slopes, ends_of(slopes, np.isfinite(intercepts)))
    corners = cut_all(edges, points)
    for group in range(len(intercepts)):
        mine = np.flatnonzero(corners.group == group)
        mine = mine[np.argsort(corners.at[mine], kind="stable")]
        borders = np.concatenate([[corners.at.min() - 1], corners.at[mine], [corners.at.max() + 1]])
        winner = np.zeros(12)
        winner[left[group]] = 1
        for place in range(len(borders) - 1):
            if place:
                winner[corners.before[mine[place - 1]]] -= 1
                winner[corners.after[mine[place - 1]]] += 1
            if borders[place + 1] - borders[place] > 1e-9:
                values = intercepts[group] + 0.5 * (borders[place] + borders[place + 1]) * slopes[group]
                assert sorted(winner)[-2:] == [0, 1]
                assert values[winner.argmax()] == pytest.approx(values.max(), rel=1e-9, abs=1e-9)


def test_one_direction_finds_what_a_fine_grid_finds() -> None:
    pool = random_pool(5, columns=2)
    start = np.array([1.0, 0.3])
    found = tune_mert(pool, start, TuningOptions(restarts=0), np.array([False, True]))
    grid = [pool.score(np.array([1.0, weight])) for weight in np.linspace(-3, 3, 6001)]
    assert found.score >= max(grid) - 1e-9
    assert found.weights[0] > 0


def tuned(pool: NbestPool, start: Floats, options: TuningOptions | None = None, *, places: int = 4) -> Tuned:
    return tune_mert(pool, start, options or TuningOptions(), np.arange(4) < places)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_the_score_is_that_of_the_weights_and_the_same_for_a_seed(seed: int) -> None:
    pool, start, options = random_pool(seed), np.full(4, 0.25), TuningOptions(seed=seed)
    result, again = (tuned(pool, start, options) for _ in range(2))
    assert result.score == pool.score(result.weights) > pool.score(start)
    assert np.abs(result.weights).sum() == pytest.approx(1.0, abs=1e-5)
    assert result.weights.tolist() == again.weights.tolist()


def test_columns_outside_the_search_keep_their_share_and_count() -> None:
    pool, start = random_pool(6), np.array([0.1, 0.2, 0.4, -0.3])
    found = tuned(pool, start, places=2)
    assert found.weights[2] / found.weights[3] == pytest.approx(0.4 / -0.3, rel=1e-4)
    assert found.score > pool.score(start)


@pytest.mark.parametrize("reference", [3, 30])
def test_gradient_of_expected_bleu_is_that_of_finite_differences(reference: int) -> None:
    """Where hypotheses are longer than the reference, and where shorter."""
    pool = random_pool(8)
    pool.statistics[..., SYSTEM_LENGTH] += np.random.default_rng(8).integers(0, 9, pool.padding.shape)
    pool.statistics[..., REFERENCE_LENGTH] = reference
    base = pool.padding
    expected = ExpectedBleu(pool.features, base, pool.statistics)
    weights = np.array([0.3, -0.2, 0.5, 0.1])

    def log_bleu(point: Floats) -> float:
        scores = pool.scores(point)
        shares = np.exp(scores - scores.max(axis=1, keepdims=True))
        shares /= shares.sum(axis=1, keepdims=True)
        return float(np.log(bleu((shares[..., None] * pool.statistics).sum(axis=(0, 1)))))

    step = 1e-5
    numeric = [(log_bleu(weights + step * axis) - log_bleu(weights - step * axis)) / (2 * step) for axis in np.eye(4)]
    assert expected.gradient(weights).tolist() == pytest.approx(numeric, rel=1e-3, abs=1e-6)


def test_bleu_is_at_least_that_of_moses(shared: Path) -> None:
    folder = shared / "moses/en-fr/mert"
    pool = pool_from_moses([str(folder / "run1.features.dat.gz")], [str(folder / "run1.scores.dat.gz")])
    moses = np.array(list(map(float, (folder / "run1.weights.txt").read_text().split())))
    assert pool.score(moses) == pytest.approx(56.9652, abs=0.02)
    start = np.array(list(map(float, (folder / "run1.init.opt").read_text().split("\n")[0].split())))
    assert tune_mert(pool, start, TuningOptions(), pool.varying()).score >= 56.97


@pytest.mark.parametrize(
    ("restarts", "points", "climbed", "rounds"),
    [(0, 1, 0, 0), (3, 4, 1, 0), (5, 6, 1, 0), (11, 6, 2, 2), (20, 6, 2, 3)],
)
def test_five_restarts_are_from_points_and_five_at_a_time_near_the_best(
    restarts: int, points: int, climbed: int, rounds: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One of every ten climbs expected BLEU first; the start itself is a point, too."""
    seen: list[object] = []
    monkeypatch.setattr(ExpectedBleu, "climb", lambda self, start, steps: seen.append("climb") or start)
    monkeypatch.setattr(_Search, "from_points", lambda self: seen.append(len(self.weights)))
    monkeypatch.setattr(_Search, "from_near_best", lambda self: seen.append("near"))
    tuned(random_pool(1), np.full(4, 0.25), TuningOptions(restarts=restarts))
    assert seen == ["climb"] * climbed + [points] + ["near"] * rounds
