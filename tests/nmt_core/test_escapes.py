"""The escapes of Moses' tokenizer."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from sacremoses import MosesTokenizer

from nmt_core.base.words import escape, is_escaped, needs_escape, unescape

TEXT = st.text(st.sampled_from("a;&|<>'\"[]#pos"))


def test_they_are_those_of_the_tokenizer() -> None:
    text = "&|<>'\"[]"
    assert escape(text) == MosesTokenizer().escape_xml(text)


def test_old_ones_are_undone_too() -> None:
    assert unescape("&bra; &bar; &ket; &#91; &#124; &#93; &amp;apos;") == "[ | ] [ | ] &apos;"


@given(TEXT)
def test_to_undo_them_gives_the_text_back(text: str) -> None:
    assert unescape(escape(text)) == text
    assert not needs_escape(escape(text))


@given(TEXT)
def test_a_text_is_escaped_if_there_is_something_to_undo(text: str) -> None:
    assert is_escaped(text) == (unescape(text) != text)
