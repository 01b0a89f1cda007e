"""Which hashes are new."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from nmt_core.preparation.filters import Seen, hash_of


@given(st.lists(st.lists(st.integers(0, 60), max_size=20), max_size=30))
def test_the_same_as_a_set(chunks: list[list[int]]) -> None:
    seen, reference = Seen(), set[int]()
    for chunk in chunks:
        expected = [not (number in reference or reference.add(number)) for number in chunk]
        assert seen.first_times(np.array(chunk, dtype=np.uint64)).tolist() == expected
    assert len(seen) == len(reference)


def test_arrays_are_few() -> None:
    seen = Seen()
    for start in range(0, 100_000, 100):
        seen.first_times(np.arange(start, start + 100, dtype=np.uint64))
    assert len(seen._runs) <= 12


def test_sides_are_not_mixed_up() -> None:
    assert len({hash_of(["a", "b"]), hash_of(["b", "a"]), hash_of(["ab", ""]), hash_of(["", "ab"])}) == 4
