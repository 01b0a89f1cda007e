"""Numbers with a fixed number of decimals, as Python reads them."""

from __future__ import annotations

import re

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from smt_bridge.graphs import extended as module
from smt_bridge.graphs.extended import fixed_numbers


@given(st.integers(0, 6), st.data())
def test_numbers_are_those_of_python(decimals: int, data: st.DataObject) -> None:
    values = data.draw(st.lists(st.integers(-(10**15) + 1, 10**15 - 1), min_size=1, max_size=20))
    tokens = [f"{'-' * (value < 0)}{abs(value):0{decimals + 1}d}" for value in values]
    tokens = [f"{token[:-decimals]}.{token[-decimals:]}" if decimals else token for token in tokens]
    tokens = [token for token in tokens if len(re.sub(r"\D", "", token)) <= 15]
    ends = np.cumsum([len(token) + 1 for token in tokens]) - 1
    begins = np.append(0, ends[:-1] + 1) if tokens else np.zeros(0, np.int64)
    octets = np.frombuffer(" ".join(tokens).encode(), np.uint8)
    found = fixed_numbers(octets, begins.astype(np.int64), ends.astype(np.int64), decimals=decimals)
    assert found is not None
    assert found.tolist() == [float(token) for token in tokens]


@given(st.text("-.0123456789e +", max_size=18), st.integers(0, 3))
def test_what_is_not_written_so_is_refused(text: str, decimals: int) -> None:
    octets = np.frombuffer(text.encode(), np.uint8)
    found = fixed_numbers(octets, np.array([0]), np.array([len(text)]), decimals=decimals)
    plain = re.fullmatch(rf"-?[0-9]+\.[0-9]{{{decimals}}}" if decimals else r"-?[0-9]+", text)
    assert (found is not None) == (plain is not None and len(re.sub(r"\D", "", text)) <= 15)


def test_many_numbers_are_read_in_parts_in_their_shape() -> None:
    size = 2 * module._AT_ONCE + 7
    octets = np.frombuffer(b"".join(b"%d.5" % (place % 10) for place in range(size)), np.uint8)
    begins = np.arange(size).reshape(1, size) * 3
    found = fixed_numbers(octets, begins, begins + 3, decimals=1)
    assert found is not None
    assert found.tolist() == [[place % 10 + 0.5 for place in range(size)]]
