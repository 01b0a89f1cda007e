"""Monolingual text with junk in it."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from nmt_core.base.errors import InputError
from nmt_core.training.data.texts import MonolingualText


@pytest.mark.parametrize("packed", [False, True])
def test_lines_that_are_no_text_are_left_out_and_counted(tmp_path: Path, packed: bool) -> None:
    content = b"un homme .\nbin\x00aire\n\xff\xfe\xfd\n\nd\xc3\xa9j\xc3\xa0\tvu\xc2\x85la\r\n\x1b[0m\n"
    path = tmp_path / ("text.gz" if packed else "text")
    path.write_bytes(gzip.compress(content) if packed else content)
    text = MonolingualText(str(path))
    assert list(text) == ["un homme .", "", "d\u00e9j\u00e0\tvu\u0085la"]
    assert text.note == f"{path}:2: 3 lines are no UTF-8 text and left out; this is the first"
    assert list(text) == ["un homme .", "", "d\u00e9j\u00e0\tvu\u0085la"]
    assert text.skipped == 3


def test_clean_text_has_no_note(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("a\nb")
    text = MonolingualText(str(tmp_path / "text"))
    assert list(text) == ["a", "b"]
    assert text.note is None


@pytest.mark.parametrize("content", [b"", bytes(range(256)) * 4])
def test_a_file_without_any_text_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "junk"
    path.write_bytes(content)
    with pytest.raises(InputError, match=r"junk: has no line of UTF-8 text"):
        list(MonolingualText(str(path)))
