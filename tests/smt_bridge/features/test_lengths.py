"""Counts and ratios of words."""

from __future__ import annotations

import math

import pytest

from smt_bridge.features.base import Candidates
from smt_bridge.features.plain import Copied, LengthRatio, WordCount

GROUPS = [Candidates("a b", ["x", "x y z w", "x y", ""]), Candidates("", ["x y", ""])]


def test_words_are_counted() -> None:
    assert WordCount().compute(GROUPS) == [[(1,), (4,), (2,), (0,)], [(2,), (0,)]]


def test_ratio_and_its_distance_from_one() -> None:
    first, second = LengthRatio().compute(GROUPS)
    assert [row[0] for row in first] == [0.5, 2.0, 1.0, 0.0]
    assert [row[1] for row in first] == pytest.approx([math.log(2), math.log(2), 0.0, math.log(2)])
    assert second == [(2.0, math.log(2)), (0.0, 0.0)]


def test_numbers_and_punctuation_that_only_one_side_has() -> None:
    source = "in 1990 , 1,000 men &#91; 3 &#93; left &#124; ."
    hypotheses = [
        "en 1990 1.000 hommes sont partis [ 3 ] .",  # the same
        "en 1990 mille hommes &#91; 3 &#93; ?",  # 1,000 is gone; a full stop became a question mark
        "1990 1990 1000 3",  # one more 1990; three marks gone
        "",
    ]
    assert Copied().compute([Candidates(source, hypotheses), Candidates("", [""])]) == [
        [(0, 0), (1, 2), (1, 3), (3, 3)],
        [(0, 0)],
    ]
