"""One member of a JSON line changes, every other character stays."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smt_bridge.nbest.json_members import read_line, with_json_features, with_json_total


def test_features_go_into_the_object_and_the_rest_keeps_its_characters() -> None:
    line = b'{ "a\\u00e9\\"" :1.50e0 ,"features" : {"LM0" : -1.50 } , "text":"x\\/y" }'
    expected = line.replace(b"-1.50 }", b'-1.50, "N0": -2 }')
    assert with_json_features(line, {"N0": "-2"}, {}) == expected


@pytest.mark.parametrize("line", [b"", b"[1]", b'{"a": 1', b'{"a" 1}', b'{"a": 1} {}', b'{"a": 1 "b": 2}', b"{1: 2}"])
def test_other_text_is_refused(line: bytes) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 (the decoder's own words)
        read_line(line)


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=6,
)


@given(
    st.dictionaries(st.text(max_size=4), VALUES, max_size=4),
    st.dictionaries(st.text(max_size=4), st.floats(-9, 9), max_size=3),
    st.sampled_from([None, 0, 1]),
)
def test_any_object_is_extended_as_json_says(others: dict[str, Any], features: dict[str, float], indent: Any) -> None:
    given_members = {**others, "features": features, "score": 7}
    given_members.pop("total", None)
    separators = (",", ":") if indent is None else (" , ", " : ")
    line = json.dumps(given_members, ensure_ascii=bool(indent), separators=separators).encode("utf-8", "surrogatepass")
    line = line if b"\xed" not in line else json.dumps(given_members).encode()
    found = json.loads(with_json_total(with_json_features(line, {"New": "1.5"}, {}), "-3", {}))
    assert found == {**given_members, "features": {**features, "New": 1.5}, "score": -3}
