"""Maps: what is drawn, what is counted, and that labels do not cover one another."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from nmt_core.base.errors import ConfigError
from scripts.experiments.cho2014 import analyse_maps, encoders, maps
from scripts.experiments.cho2014.phrase_sample import Sample
from smt_bridge.tables import table as phrase_table


def table(folder: Path, phrases: list[str]) -> str:
    (folder / "table").write_text("".join(f"{one} ||| x ||| 0.5\n{one} ||| y ||| 0.5\n" for one in sorted(phrases)))
    return str(folder / "table")


def test_principal_components_are_those_of_the_singular_values() -> None:
    vectors = np.random.default_rng(1).normal(2.0, 1.0, (90, 60)).astype(np.float32)
    centred = vectors.astype(float) - vectors.mean(axis=0, dtype=float)
    _, _, directions = np.linalg.svd(centred, full_matrices=False)
    expected = centred @ directions[:50].T
    found = maps.principal_components(vectors)
    assert found.shape == (90, 50)
    np.testing.assert_allclose(np.abs(found), np.abs(expected), rtol=0, atol=1e-4)
    assert maps.principal_components(vectors[:, :7]).shape == (90, 7)


def test_phrases_are_drawn_by_digest_whatever_the_windows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    phrases = [f"a b c {number}" for number in range(40)] + ["short", "also short"]
    path = table(tmp_path, phrases)
    drawn = Sample(path, minimum_words=4, points=10, seed=3)
    assert drawn.available == 40
    assert len(set(drawn.phrases)) == 10
    assert drawn.reordered() == []
    monkeypatch.setattr(phrase_table, "WINDOW", 3)
    again = Sample(path, minimum_words=4, points=10, seed=3)
    assert again.phrases == drawn.phrases
    assert Sample(path, minimum_words=4, points=10, seed=4).phrases != drawn.phrases
    assert Sample(path, minimum_words=4, points=5, seed=3).phrases == drawn.phrases[:5]


def test_phrases_of_the_same_words_are_found(tmp_path: Path) -> None:
    path = table(tmp_path, ["a b c d", "d c b a", "a c b d", "a a b c", "a b c c", "p q r s", "s p q r"])
    pairs = Sample(path, minimum_words=4, points=2, seed=1).reordered()
    assert sorted(pairs) == [("a b c d", "a c b d"), ("p q r s", "s p q r")]


def test_shares_of_neighbours_are_counted() -> None:
    texts = ["a x", "b x", "a c y", "b y"]
    vectors = np.array([[1, 0.0], [1, 0.1], [-1, 0], [-1, 0.1]], dtype=np.float32)
    # all four are neighbours of one another: of 12 pairs 4 share the last word, 4 the first, 6 the number of words
    assert maps.shares_of_neighbours(texts, vectors) == pytest.approx((4 / 12, 4 / 12, 6 / 12))


def test_phrases_in_another_order_are_told_apart_or_not() -> None:
    others = np.random.default_rng(2).normal(0, 1, (60, 8)).astype(np.float32)
    first = np.random.default_rng(3).normal(0, 1, (4, 8)).astype(np.float32)
    assert maps.share_told_apart(first, first + 0.01, others) == 0.0
    assert maps.share_told_apart(first, np.stack([first[0], *-first[1:]]), others) == 0.75


def test_a_point_of_the_map_takes_no_place_among_its_own_neighbours(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nine others are nearer to the first phrase of the pair than the second one, which makes that the tenth."""
    degrees = {f"p {number}": 6.0 * number + 2 for number in range(60)} | {"a b": 0.0, "b a": 27.0}

    def phrases(texts: list[str]) -> np.ndarray:
        angles = np.radians([degrees[text] for text in texts])
        return np.stack([np.cos(angles), np.sin(angles)], axis=1).astype(np.float32)

    texts = [text for text in degrees if text != "b a"]
    monkeypatch.setattr(encoders, "encode", lambda encoder, texts: phrases(texts))
    sample = SimpleNamespace(reordered=lambda: [("a b", "b a")])
    measured = analyse_maps._measured(SimpleNamespace(), sample, texts, phrases(texts))  # type: ignore[arg-type]  # stand-ins
    assert (measured.told_apart, measured.reordered) == (0.0, 1)


def test_bags_know_no_order() -> None:
    vectors = {"a": np.array([1, 2], np.float32), "b": np.array([0, 5], np.float32)}
    bags = maps.bags_of_words(["a b a", "a a b", "b"], vectors.__getitem__)
    assert bags.tolist() == [[2, 9], [2, 9], [0, 5]]


@pytest.mark.parametrize(
    ("points", "perplexity", "said"),
    [
        (4, None, "a map of phrases needs at least 5 of them; there are 4"),
        (31, 11.0, "--perplexity 11 must be between 1 and 10, a third of the 31 phrases"),
        (31, 0.5, "--perplexity 0.5 must be between 1 and 10"),
        (31, float("nan"), "--perplexity nan must be between 1 and 10"),
    ],
)
def test_points_and_perplexity_that_do_not_fit(points: int, perplexity: float | None, said: str) -> None:
    with pytest.raises(ConfigError) as caught:
        maps.check_points(points, perplexity, "phrases")
    assert said in str(caught.value)


@pytest.mark.parametrize("noise", [0.0, 1e-8])
def test_vectors_that_are_the_same_have_no_map(noise: float) -> None:
    chance = np.random.default_rng(1)
    vectors = (0.3 + noise * chance.normal(size=(20, 6))).astype(np.float32)
    with pytest.raises(ConfigError, match="the vectors of all 20 are the same, such as that of 'a'"):
        maps.project(["a"] * 20, vectors, perplexity=3.0, seed=1)


def test_a_map_is_the_same_again() -> None:
    pytest.importorskip("sklearn")
    generator = np.random.default_rng(7)
    clusters = np.repeat(np.eye(8)[:3] * 9, 30, axis=0)
    vectors = (clusters + generator.normal(0, 1, (90, 8))).astype(np.float32)
    texts = [str(number) for number in range(90)]
    found = maps.project(texts, vectors, perplexity=10.0, seed=4)
    assert found.places_N2.min() == 0.0
    assert found.places_N2.max() == 1.0
    assert np.array_equal(found.places_N2, maps.project(texts, vectors, perplexity=10.0, seed=4).places_N2)
    distances = ((found.places_N2[:, None] - found.places_N2[None]) ** 2).sum(axis=2)
    nearest = np.argsort(distances, axis=1)[:, 1:6]
    assert (nearest // 30 == np.arange(90)[:, None] // 30).mean() > 0.95
