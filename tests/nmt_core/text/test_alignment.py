"""Alignment points as they are written."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nmt_core.base.errors import ConfigError
from nmt_core.text.alignment import parse_pharaoh, pharaoh

POINTS = st.lists(st.tuples(st.integers(0, 300), st.integers(0, 300)), max_size=9)


@given(POINTS)
def test_points_are_read_as_written(points: list[tuple[int, int]]) -> None:
    assert parse_pharaoh(pharaoh(points)) == sorted(points)


@pytest.mark.parametrize("point", ["1:2", "1-", "-2", "1", "-1-2", "a-b", "1-2-3"])
def test_anything_else_is_refused(point: str) -> None:
    with pytest.raises(ConfigError, match=f"^alignment point '{point}': expected SOURCE-TARGET, such as 0-1$"):
        parse_pharaoh(f"0-0 {point}")
