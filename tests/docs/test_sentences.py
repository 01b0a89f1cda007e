"""Sentences of README and documents are short, and words that readers stumbled over do not come back."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.docs.commands import PAGES, ROOT

LONGEST = 30
WORDS = ("whoever", "anew", "sidecar", "halves", "lane", "advice", "dialect", "catalogue", "is told")
NOT_YET: set[str] = {
    "analysis.md",
    "api.md",
    "architecture.md",
    "decoding.md",
    "doctor.md",
    "extending.md",
    "features.md",
    "foreign-models.md",
    "formats.md",
    "graphs.md",
    "guarantees.md",
    "guide-moses.md",
    "hybrid.md",
    "language-models.md",
    "large-vocabularies.md",
    "long-jobs.md",
    "models.md",
    "preparation.md",
    "results.md",
    "serving.md",
    "training.md",
    "unknown-words.md",
}  # pages whose sentences are still to be cut
_NO_PROSE = re.compile(r"^```.*?^```|^    [^\n]*$|^\|[^\n]*$|^#[^\n]*$|^<[^\n]*$", re.MULTILINE | re.DOTALL)


def prose(text: str) -> Iterator[str]:
    """The paragraphs and points of a page, without code, tables, headings and what is quoted."""
    text = re.sub(r"\]\([^)]*\)", "]", _NO_PROSE.sub("\n", text))
    for paragraph in re.split(r"\n\s*\n|\n\s*(?:[-*]|\d+\.) ", text):
        yield re.sub(r'`[^`]*`|"[^"]*"', "NAME", " ".join(paragraph.split()))


def sentences(text: str) -> Iterator[str]:
    for paragraph in prose(text):
        yield from re.split(r"(?<!\bal\.)(?<!\be\.g\.)(?<!\bi\.e\.)(?<=[.!?])[)*]* +(?=[A-Z(*\[])", paragraph)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_sentences_are_short(page: Path) -> None:
    long = [sentence for sentence in sentences(page.read_text()) if len(sentence.split()) > LONGEST]
    assert page.name in NOT_YET or long == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_words_that_went_do_not_come_back(page: Path) -> None:
    text = re.sub(r"```.*?```|`[^`]*`|\"[^\"]*\"|\]\([^)]*\)", "", page.read_text(), flags=re.DOTALL)
    assert page.name in NOT_YET or [word for word in WORDS if re.search(rf"\b{word}\b", text, re.IGNORECASE)] == []


def test_no_page_is_excused_in_vain() -> None:
    assert {page.name for page in PAGES} >= NOT_YET
