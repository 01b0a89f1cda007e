"""Lists become arrays; what does not fit is said with its line."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from nmt_core.base.errors import InputError
from smt_bridge.errors import FormatError
from smt_bridge.metrics.bleu import COLUMNS, Counts
from smt_bridge.metrics.references import read_references
from smt_bridge.nbest.entry import NbestList, runs_of_sentence
from smt_bridge.nbest.moses import parse_entry
from smt_bridge.tuning.moses_dat import pool_from_moses
from smt_bridge.tuning.pool import Column, NbestPool, pool_from_lists


def pool_of(*lines: bytes) -> NbestPool:
    entries = [parse_entry(line, path="list", number=number) for number, line in enumerate(lines, start=1)]

    def count(group: NbestList) -> Counts:
        return np.zeros((len(group.entries), COLUMNS), dtype=np.int64)

    return pool_from_lists(runs_of_sentence(entries), count, path="list")


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
    [(b"A= 1", "B is missing"), (b"A= 1 B= 2 C= 3", "C stands here"), (b"A= 1 2 B= 3", "A has 2 values here and 1")],
)
def test_row_of_another_shape_names_its_line(second: bytes, said: str) -> None:
    with pytest.raises(FormatError, match=rf"list:2: feature {said}"):
        pool_of(b"0 ||| a ||| A= 1 B= 2", b"0 ||| a ||| " + second)


def test_a_value_under_the_wrong_name_is_noticed() -> None:
    with pytest.raises(FormatError, match="list:2: feature A has 2 values here and 1 in earlier lines"):
        pool_of(b"0 ||| a ||| A= 1 B= 2 3", b"0 ||| a ||| A= 1 2 B= 3")


def test_column_equal_within_lists_does_not_vary() -> None:
    pool = pool_of(b"0 ||| a ||| A= 1 B= 2", b"0 ||| a ||| A= 1 B= 3", b"1 ||| a ||| A= 5 B= 3")
    assert pool.varying().tolist() == [False, True]
    assert pool.spreads().tolist() == pytest.approx([0.0, (0.5 / 3) ** 0.5])


@pytest.mark.parametrize("size", ["e-310", "e-200", "e38"])
def test_the_spread_of_any_numbers_is_known(size: str) -> None:
    pool = pool_of(f"0 ||| a ||| A= 1{size}".encode(), f"0 ||| a ||| A= 3{size}".encode())
    assert pool.spreads()[0] == pytest.approx(float(f"1{size}"), rel=1e-6, abs=0)


def test_short_reference_is_an_error_with_both_numbers(tmp_path: Path) -> None:
    (tmp_path / "ref").write_text("a\nb\n")
    with pytest.raises(InputError, match=r"has 2 lines .* 3 lines"):
        read_references(str(tmp_path / "ref"), 3, path="list")


FEATURES = "FEATURES_TXT_BEGIN_0 0 2 2 LM0_0 LM0_1 \n1 2 \n3 4 \nFEATURES_TXT_END_0\n"
SCORES = "SCORES_TXT_BEGIN_0 0 2 9 BLEU\n7 13 4 12 2 11 1 10 10 \n7 9 4 8 2 7 1 6 10 \nSCORES_TXT_END_0\n"


def test_files_of_the_extractor_are_read(tmp_path: Path) -> None:
    (tmp_path / "f").write_text(FEATURES)
    (tmp_path / "s").write_text(SCORES)
    pool = pool_from_moses(str(tmp_path / "f"), str(tmp_path / "s"))
    assert pool.columns == (Column("LM0", 0), Column("LM0", 1))
    assert pool.features[:, 0].tolist() == [[1, 3], [2, 4]]
    assert pool.statistics[0, 0].tolist() == [7, 4, 2, 1, 13, 12, 11, 10, 13, 10]


@pytest.mark.parametrize(
    ("features", "scores"),
    [
        ("", SCORES),
        (FEATURES.replace("TXT", "BIN"), SCORES),
        (FEATURES.replace("3 4", "3"), SCORES),
        (FEATURES.replace("3 4 \n", ""), SCORES),
        (FEATURES.replace("3 4", "3 nan"), SCORES),
        (FEATURES, SCORES.replace("BLEU", "TER")),
        (FEATURES, ""),
    ],
)
def test_damaged_files_of_the_extractor_are_refused(tmp_path: Path, features: str, scores: str) -> None:
    (tmp_path / "f").write_text(features)
    (tmp_path / "s").write_text(scores)
    with pytest.raises(FormatError):
        pool_from_moses(str(tmp_path / "f"), str(tmp_path / "s"))
