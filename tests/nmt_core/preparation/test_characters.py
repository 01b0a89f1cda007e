"""Characters that are no text."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nmt_core.preparation.steps import clean, is_junk


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        ("plain text", "plain text"),
        ("  a\tb  c ", "a b c"),
        ("a\u2028b\u3000c\u0085d", "a b c\u2026d"),
        ("\ufeffone\u200b two\u00ad", "one two"),
        ("It\u0092s It\u0019s", "It\u2019s It\u2019s"),
        ("a\x13b\x14\x18c\x19 \x1cd\x1d", "a\u2013b\u2014\u2018c\u2019 \u201cd\u201d"),
        ("a\u180e\u200e\u200f\u202a\u202e\u2060\u206f\ufff9\ufffbb\x0bc\x0cd\re", "ab c d e"),
        ("u\u0308ber", "\u00fcber"),
        ("10\u202f000\u00a0k\u2007m", "10\u00a0000\u00a0k\u00a0m"),
        (
            "\u0646\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645",
            "\u0646\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645",
        ),
        ("a\x07b\ue000c\ufffdd", "abcd"),
    ],
)
def test_characters_are_mended_or_go(raw: str, expected: str) -> None:
    assert clean(raw) == expected


@given(st.text())
def test_cleaning_twice_is_cleaning_once_and_leaves_no_control_character(line: str) -> None:
    once = clean(line)
    assert clean(once) == once
    assert not any(unicodedata.category(char) in ("Cc", "Cn", "Co", "Cs") for char in once)
    assert "  " not in once
    assert once == once.strip(" ")


@pytest.mark.parametrize(
    ("line", "junk"),
    [
        ("", False),
        ("text with a tab\tand one bell\x07", False),
        ("a NUL \0 in otherwise fine text", True),
        ("\x01\x02\x03\x04abc", True),
        ("\x01\ue000" + "a" * 18, False),
        ("\x01\ue000" + "a" * 17, True),
        ("\ufffd\ufffd\ufffd not decoded", True),
        ("caf\u00e9 \u4e2d\u6587 \U0001f600", False),
    ],
)
def test_junk_is_told_from_text(line: str, junk: bool) -> None:
    assert is_junk(line, maximum_share=0.1) == junk
