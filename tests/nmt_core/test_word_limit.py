"""Words, whole numbers and factors of a text; lines of too many words are named."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nmt_core.base.errors import InputError
from nmt_core.base.words import (
    MOST_FACTORS,
    MOST_WORDS,
    check_factors,
    check_words,
    count_words,
    split_factors,
    split_words,
    utf8,
    whole_number,
    without_factors,
    without_markup,
)

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


def test_the_usual_limit_is_a_thousand() -> None:
    check_words("a " * 1000, MOST_WORDS, path="in", line=7)
    problem = "in:7: has 1,001 words; up to 1,000 are taken: divide the line, or allow more with --max-words"
    with pytest.raises(InputError, match=f"^{problem}$"):
        check_words("a\t" * 1001, MOST_WORDS, path="in", line=7)


def test_words_are_divided_by_spaces_and_tabs_alone_and_a_number_has_18_digits() -> None:
    assert split_words(" a\u00a0b\u2003c\x0b\t d ") == ["a\u00a0b\u2003c\x0b", "d"]
    assert [whole_number(text) for text in ("007", "9" * 18, "9" * 19, "+1", "")] == [7, 10**18 - 1, None, None, None]
    assert [count_words(text) for text in ("", " ", " a", "a ", "a\tb", "a  b", "a b")] == [0, 0, 1, 1, 2, 2, 2]
    assert utf8("\u00e9 \udcff") == "\u00e9 \ufffd\ufffd\ufffd"


def test_factors_are_as_many_as_the_model_reads() -> None:
    for text, count, problem in (
        ("a|A|x", 1, "'a|A|x' has 3 factors; the model reads 2, written word|factor"),
        ("a" * 99, 2, f"'{'a' * 60}' has 1 factor; the model reads 3, written word|factor|factor"),
        (f"{'a' * 99}|", 1, f"'{'a' * 60}' has an empty factor"),
        ("a|A |A", 1, "'|A' has an empty factor"),
    ):
        with pytest.raises(InputError) as caught:
            check_factors(text, count, path="in", line=3)
        assert str(caught.value) == f"in:3: the word {problem}"
        check_factors(text, 0, path="in", line=3)


def test_factors_and_markup_of_moses() -> None:
    assert (split_factors("a|A", 0), without_factors(["a|A|1", "b"]), MOST_FACTORS) == ([["a|A"]], ["a", "b"], 8)
    assert without_markup("<a>|[b]&'\"") == "&lt;a&gt;&#124;&#91;b&#93;&'\""
    assert without_markup("<a>|[b]", factored=True) == "&lt;a&gt;|&#91;b&#93;"
