"""Pages and their sentences are short, and words that readers stumbled over do not come back."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.docs.commands import PAGES, ROOT

LONGEST = 30
READ = [*PAGES, *sorted((ROOT / "docs" / "develop").glob("*.md"))]
WORDS = ("whoever", "anew", "sidecar", "halves", "lane", "advice", "dialect", "catalogue", "is told")
_CODE = re.compile(r"^```.*?^```|^    [^\n]*$", re.MULTILINE | re.DOTALL)
_NO_PROSE = re.compile(_CODE.pattern + r"|^\|[^\n]*$|^#[^\n]*$|^<[^\n]*$", re.MULTILINE | re.DOTALL)


def prose(text: str) -> Iterator[str]:
    """The paragraphs and points of a page, without code, tables, headings and what is quoted."""
    text = re.sub(r"\]\([^)]*\)", "]", _NO_PROSE.sub("\n", text))
    for paragraph in re.split(r"\n\s*\n|\n\s*(?:[-*]|\d+\.) ", text):
        yield re.sub(r'`[^`]*`|"[^"]*"', "NAME", " ".join(paragraph.split())).replace("**", "")


def sentences(text: str) -> Iterator[str]:
    for paragraph in prose(text):
        yield from re.split(r"(?<!\bal\.)(?<!\be\.g\.)(?<!\bi\.e\.)(?<=[.!?])[)*]* +(?=[A-Z(*\[])", paragraph)


def words(sentence: str) -> int:
    """How many words a sentence has; citations and the symbols of formulas are none."""
    without = re.sub(r"\([^()]*\b(?:19|20)\d\d[^()]*\)", "", sentence)
    return sum(bool(re.match(r"\W*(?:[a-zA-Z]{2}|a\b|\d)", word)) for word in without.split())


@pytest.mark.parametrize("page", READ, ids=lambda page: str(page.relative_to(ROOT)))
def test_sentences_are_short(page: Path) -> None:
    long = [sentence for sentence in sentences(page.read_text()) if words(sentence) > LONGEST]
    assert long == []


@pytest.mark.parametrize("page", READ, ids=lambda page: str(page.relative_to(ROOT)))
def test_words_that_went_do_not_come_back(page: Path) -> None:
    text = re.sub(r"`[^`]*`|\"[^\"]*\"|\]\([^)]*\)", "", _CODE.sub("", page.read_text()))
    assert [word for word in WORDS if re.search(rf"\b{word}\b", text, re.IGNORECASE)] == []


def test_pages_are_no_longer_than_people_read() -> None:
    lines = {page: page.read_text().count("\n") for page in PAGES}
    assert lines.pop(ROOT / "README.md") <= 120
    assert sum(lines.values()) <= 2900
