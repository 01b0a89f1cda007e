"""Score fields that are plain numbers, against the rule for one number written as a regular expression."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smt_bridge.tables.plain_numbers import are_plain_numbers

_PLAIN = re.compile(rb"[0-9]+(\.[0-9]*)?(e-[0-9]+|E-[0-9]+)?")


@pytest.mark.parametrize("number", [b"0", b"1", b"0.5", b"2.", b"1e-05", b"3.25E-7", b"007", b"2.718"])
def test_plain(number: bytes) -> None:
    assert are_plain_numbers([b" %b 1 " % number], each=2)


@pytest.mark.parametrize(
    "number",
    [b"", b".5", b"+1", b"-1", b"1e5", b"1e+5", b"1.2.3", b"1e-5e-5", b"1e-5.5", b"1e-", b"e-5", b"nan", b"0,5", b"0x1",
     b"1|", b"\xff", b"1\t", b"1-2", b"9" * 301],
)  # fmt: skip
def test_not_plain(number: bytes) -> None:
    assert not are_plain_numbers([b" 1 1 ", b" %b 1 " % number, b" 1 1 "], each=2)


@pytest.mark.parametrize("field", [b"1 1 ", b" 1 1", b" 1  1 ", b" 1 ", b" 1 1 1 ", b"", b" ", b" 1 \n 1 "])
def test_other_fields(field: bytes) -> None:
    assert not are_plain_numbers([b" 1 1 ", field], each=2)
    assert not are_plain_numbers([field, b" 1 1 "], each=2)


_TOKEN = st.text(alphabet="05.eE- +\nx", max_size=6).map(str.encode)


@given(st.lists(st.lists(_TOKEN, max_size=4), min_size=1, max_size=4), st.integers(1, 3))
def test_random_fields(rows: list[list[bytes]], each: int) -> None:
    fields = [b" " + b"".join(token + b" " for token in row) for row in rows]
    expected = all(
        len(field[1:-1].split(b" ")) == each and all(map(_PLAIN.fullmatch, field[1:-1].split(b" "))) for field in fields
    )
    assert are_plain_numbers(fields, each=each) == expected
