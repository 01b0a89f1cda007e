"""Lines of too many words: named, or cut into pieces that hold all of their words."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nmt_core.base.errors import InputError
from nmt_core.base.words import check_words, count_words, cut_words

_TEXT = st.lists(st.sampled_from(["a", "b.", ".", "c\N{NO-BREAK SPACE}d", "!"])).map(" ".join)


@given(_TEXT, st.integers(1, 8))
def test_pieces_have_all_words_and_no_more_than_allowed(text: str, most: int) -> None:
    pieces = cut_words(text, most)
    assert [word for piece in pieces for word in piece.split(" ") if word] == [w for w in text.split(" ") if w]
    assert all(count_words(piece) <= most for piece in pieces)
    if count_words(text) <= most:
        assert pieces == [text]
    else:
        assert all(piece.split(" ") and count_words(piece) > most // 2 for piece in pieces[:-1])


@pytest.mark.parametrize(
    ("text", "pieces"),
    [
        ("a b c d e", ["a b c d", "e"]),
        ("a b c . d e", ["a b c .", "d e"]),
        ("a b c. d e f", ["a b c.", "d e f"]),
        (". b c d e f", [". b c d", "e f"]),
        ("a  b\tc d ", ["a  b\tc d "]),
        ("", [""]),
    ],
)
def test_pieces_end_with_sentences_where_they_can(text: str, pieces: list[str]) -> None:
    assert cut_words(text, 4) == pieces


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
