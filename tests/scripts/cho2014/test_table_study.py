"""What `analyse` finds in a small table, worked out by hand."""

from __future__ import annotations

import hashlib
import math
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from scripts.experiments.cho2014.table_study import (
    CLASSES,
    Pool,
    Study,
    differences,
    sign_test,
    spearman,
    spearman_of_cells,
    study,
)

# source, target, lex(t|s), joint count, source count, the model's p; phi is joint count / source count
LINES = [
    ("a b c d", "x", 0.5, 6, 10, 0.1),
    ("a b c d", "x y", 0.09, 3, 10, 0.4),
    ("a b c d", "z", 0.2, 1, 10, 0.2),
    ("e f g h", "u v w", 0.125, 1, 3, 0.3),
    ("e f g h", "r", 0.25, 1, 3, 0.5),
    ("e f g h", "s", 0.25, 1, 3, 0.1),
    ("i j k l", "x", 0.5, 4, 5, 0.1),  # neither frequent nor rare
    ("i j k l", "y", 0.5, 1, 5, 0.1),
    ("i j k l", "z", 0.5, 0.5, 5, 0.1),
    ("m n o p", "x", 0.5, 1, 2, 0.1),  # two targets
    ("m n o p", "y", 0.5, 1, 2, 1e-9),
    ("q", "x", 0.5, 1, 1, 0.9),
]


def content(lines=LINES) -> bytes:
    rows = [
        f"{source} ||| {target} ||| 0.5 0.5 {joint / seen:.6g} {lex} {p} ||| 0-0 ||| 9 {seen} {joint} ||| |||\n"
        for source, target, lex, joint, seen, p in lines
    ]
    return "".join(rows).encode()


def found(tmp_path: Path, pool: Pool | None = None, lines=LINES) -> Study:
    path = tmp_path / "table"
    path.write_bytes(content(lines))
    return study(str(path), column=4, pool=pool or Pool())


def test_every_cell_of_a_table_of_twelve_lines(tmp_path: Path) -> None:
    seen = found(tmp_path)
    assert (seen.lines, seen.sources, seen.long_sources) == (12, 5, 4)
    assert seen.pool_sources == {"frequent": 1, "rare": 1}
    (frequent,), (rare,) = seen.chosen["frequent"], seen.chosen["rare"]
    assert (frequent.text, frequent.seen) == ("a b c d", 10)
    assert [target.text for target in frequent.by_phi] == ["x", "x y", "z"]
    assert [target.text for target in frequent.by_model] == ["x y", "z", "x"]
    assert [target.text for target in rare.by_phi] == ["r", "s", "u v w"]  # all at 1/3, as often: by text
    assert [target.text for target in rare.by_model] == ["r", "u v w", "s"]
    assert frequent.by_phi[1].phi == pytest.approx(math.log(0.3))
    # x y against x; r against r
    assert seen.lengths == [1, 0]
    assert seen.literal == pytest.approx([math.log(0.09) / 2 - math.log(0.5), 0.0])
    # a b c d: ranks of p 1 3 2, of the counts 3 2 1; e f g h has equal counts and says nothing
    assert seen.follows == [(pytest.approx(-0.5), pytest.approx(1.0))]
    assert [int(counts.sum()) for counts in seen.histograms] == [1, 2, 3, 3, 3]
    assert int(seen.long_histogram.sum()) == 11
    assert seen.histograms[0][39, 39] == 1  # ln 1 and ln .9, at the upper right
    assert seen.histograms[1][37, 39 - math.floor(-math.log(0.1) / 0.75)] == 1  # ln .5 and ln .1


def test_blanks_make_no_other_source(tmp_path: Path) -> None:
    """Moses cuts phrases at any number of spaces and tabs: these lines are of the same sources for it."""
    blanks = [" ", "  ", "\t"]
    lines = [(source.replace(" ", blanks[n % 3]), *rest) for n, (source, *rest) in enumerate(LINES)]
    expected, seen = found(tmp_path), found(tmp_path, lines=lines)
    assert (seen.sources, seen.long_sources, seen.chosen) == (expected.sources, expected.long_sources, expected.chosen)


def test_the_furthest_pairs_of_either_side(tmp_path: Path) -> None:
    seen = found(tmp_path)
    worst = seen.table_likes[0]
    assert (worst.source, worst.target, worst.seen) == ("m n o p", "y", 2)
    assert worst.difference == pytest.approx(math.log(0.5) - math.log(1e-9))
    assert seen.model_likes[0].target == "z"
    assert seen.model_likes[0].difference == pytest.approx(math.log(0.2 / 0.1))
    assert all(len(one) == 10 for one in (seen.model_likes, seen.table_likes))
    assert all(a.difference >= b.difference for a, b in pairwise(seen.table_likes))


@pytest.mark.parametrize("size", [1, 3, 50])
def test_windows_change_nothing_and_the_seed_chooses(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    names = [f"w{number:02} a b c" for number in range(40)]
    lines = [(name, target, 0.5, 1, 3, 0.1) for name in names for target in "xyz"]
    monkeypatch.setattr("smt_bridge.tables.table.WINDOW", size)
    chosen = {seed: found(tmp_path, Pool(phrases=10, seed=seed), lines).chosen for seed in (1, 2)}
    texts = {seed: [source.text for source in kinds["rare"]] for seed, kinds in chosen.items()}
    for seed, found_texts in texts.items():
        digests = {name: hashlib.blake2b(f"{seed} {name}".encode(), digest_size=8).digest() for name in names}
        assert found_texts == sorted(names, key=digests.__getitem__)[:5]
    assert texts[1] != texts[2]


def test_rank_correlations_are_those_of_the_definition() -> None:
    assert spearman([1.0, 2.0, 3.0], [5.0, 6.0, 9.0]) == pytest.approx(1.0)
    # with ties: ranks 1 2.5 2.5 4 and 1 2 3.5 3.5, correlation by hand
    assert spearman([0, 1, 1, 2], [0, 1, 2, 2]) == pytest.approx(3.75 / 4.5)
    assert spearman([1, 1], [1, 2]) == 0.0
    generator = np.random.default_rng(1)
    counts = generator.integers(0, 4, (5, 6))
    pairs = [(x, y) for x in range(5) for y in range(6) for _ in range(counts[x, y])]
    assert spearman_of_cells(counts) == pytest.approx(spearman(*zip(*pairs, strict=True)))
    assert spearman_of_cells(np.zeros((3, 3), dtype=np.int64)) == 0.0


def test_the_sign_test_is_the_binomial_tail() -> None:
    assert sign_test(0, 0) == sign_test(5, 5) == 1.0
    assert sign_test(1, 5) == sign_test(5, 1) == pytest.approx(2 * (1 + 6) / 64)
    assert 0.0 < sign_test(300, 700) < 1e-30
    test = differences([-1.0, -2.0, 0.0, 1.0])
    assert (test.below, test.above, test.mean, test.p_value) == (2, 1, -0.5, 1.0)
    assert len(CLASSES) == 5
