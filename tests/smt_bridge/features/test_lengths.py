"""Counts and ratios of words."""

from __future__ import annotations

import math

import pytest

from smt_bridge.features.base import Candidates
from smt_bridge.features.lengths import LengthRatio, WordCount

GROUPS = [Candidates("a b", ["x", "x y z w", "x y", ""]), Candidates("", ["x y", ""])]


def test_words_are_counted() -> None:
    assert WordCount().compute(GROUPS) == [[(1,), (4,), (2,), (0,)], [(2,), (0,)]]


def test_ratio_and_its_distance_from_one() -> None:
    first, second = LengthRatio().compute(GROUPS)
    assert [row[0] for row in first] == [0.5, 2.0, 1.0, 0.0]
    assert [row[1] for row in first] == pytest.approx([math.log(2), math.log(2), 0.0, math.log(2)])
    assert second == [(2.0, math.log(2)), (0.0, 0.0)]
