"""Lines of too many words are named."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nmt_core.base.errors import InputError
from nmt_core.base.words import check_words, count_words

_TEXT = st.lists(st.sampled_from(["a", "b.", ".", "c\N{NO-BREAK SPACE}d", "!"])).map(" ".join)


@given(_TEXT, st.integers(1, 8))
def test_exactly_the_longer_lines_are_refused(text: str, most: int) -> None:
    if count_words(text) <= most:
        check_words(text, most, path="in", line=3)
        return
    with pytest.raises(
        InputError, match=rf"^in:3: has {count_words(text)} words; up to {most} are taken: .*--max-words"
    ):
        check_words(text, most, path="in", line=3)


def test_blanks_are_no_words() -> None:
    check_words("a" + " " * 5000 + "b\t\t", 2, path="in", line=1)
