"""Lists become arrays; what does not fit is said with its line."""

from __future__ import annotations

import numpy as np
import pytest

from smt_bridge.errors import FormatError
from smt_bridge.metrics.bleu import COLUMNS, Counts
from smt_bridge.nbest.entry import NbestList, runs_of_sentence
from smt_bridge.nbest.moses import parse_entry
from smt_bridge.tuning.pool import Column, NbestPool, pool_from_lists


def pool_of(*lines: bytes) -> NbestPool:
    entries = [parse_entry(line, path="list", number=number) for number, line in enumerate(lines, start=1)]

    def count(group: NbestList) -> Counts:
        return np.zeros((len(group.entries), COLUMNS), dtype=np.int64)

    return pool_from_lists(((group, count(group)) for group in runs_of_sentence(entries)), path="list")


def test_lists_of_unequal_length_are_padded() -> None:
    pool = pool_of(b"0 ||| a ||| A= 1 B= 2 3", b"0 ||| a ||| B= 5 6 A= 4", b"7 ||| a ||| A= 7 B= 8 9")
    assert pool.columns == (Column("A", 0), Column("B", 0), Column("B", 1))
    assert pool.features[:, 0].tolist() == [[1, 4], [2, 5], [3, 6]]
    assert pool.features[:, 1, 0].tolist() == [7, 8, 9]
    assert pool.entries == 3
    assert pool.scores(np.array([1.0, 0.0, 1.0])).tolist() == [[4, 10], [16, -np.inf]]


def test_sparse_feature_is_zero_where_missing() -> None:
    pool = pool_of(b"0 ||| a ||| A= 1", b"0 ||| a ||| A= 2 s_x= 3", b"1 ||| a ||| s_y= 5 A= 4")
    assert [column.name for column in pool.columns] == ["A", "s_x", "s_y"]
    assert pool.features[:, :, 0].T.tolist() == [[1, 0, 0], [4, 0, 5]]
    assert pool.features[:, 0, 1].tolist() == [2, 3, 0]


@pytest.mark.parametrize(
    ("second", "said"),
    [
        (b"X_= 1", "A is missing here but stands in earlier lines"),
        (b"A= 1", "B is missing here but stands in earlier lines"),
        (b"A= 1 B= 2 C= 3", "C stands here but not in earlier lines"),
        (b"A= 1 2 B= 3", "A has 2 values here and 1 in earlier lines"),
        (b"A= 1 B= 3 s_= 1 2", "s_ has 2 values here and 1 in earlier lines"),
    ],
)
def test_row_of_another_shape_names_its_line(second: bytes, said: str) -> None:
    with pytest.raises(FormatError, match=rf"^list:2: feature {said}$"):
        pool_of(b"0 ||| a ||| B= 2 A= 1 s_= 1", b"0 ||| a ||| " + second)


@pytest.mark.parametrize(("regular", "sparse", "dense"), [(499, 1, 500), (499, 2, 499), (500, 1, 500)])
def test_up_to_500_columns_are_dense_and_of_more_those_of_every_line(regular: int, sparse: int, dense: int) -> None:
    every = b"0 ||| a ||| " + b" ".join(b"A%d= 1" % number for number in range(regular))
    assert pool_of(every + b" s_x= 1" + b" 1" * (sparse - 1), every).dense == dense
    with pytest.raises(FormatError) as caught:
        pool_of(every + b" ".join([b" B= 1", b"C= 2"][: 501 - regular]))
    assert str(caught.value) == "list: has 501 values in every line; besides sparse features, at most 500 are tuned"


def test_column_equal_within_lists_does_not_vary() -> None:
    pool = pool_of(b"0 ||| a ||| A= 1 B= 2", b"0 ||| a ||| A= 1 B= 3", b"1 ||| a ||| A= 5 B= 3")
    assert pool.varying().tolist() == [False, True]
    assert pool.spreads().tolist() == pytest.approx([0.0, (0.5 / 3) ** 0.5])


def test_a_sparse_feature_that_all_hypotheses_of_a_list_have_alike_does_not_vary() -> None:
    some = b" ".join(b"s_%d= 1" % number for number in range(500))
    pool = pool_of(b"0 ||| a ||| A= 1 s_all= 1 " + some, b"0 ||| b ||| A= 1 s_all= 1", b"1 ||| c ||| A= 1")
    alike = [column.name for column, varies in zip(pool.columns, pool.varying(), strict=True) if not varies]
    assert alike == ["A", "s_all"]
    assert pool.spreads().tolist() == [0.0] + [1.0] * 501  # sparse ones are not scaled


@pytest.mark.parametrize("size", ["e-310", "e-200", "e38"])
def test_the_spread_of_any_numbers_is_known(size: str) -> None:
    pool = pool_of(f"0 ||| a ||| A= 1{size}".encode(), f"0 ||| a ||| A= 3{size}".encode())
    assert pool.spreads()[0] == pytest.approx(float(f"1{size}"), rel=1e-6, abs=0)
