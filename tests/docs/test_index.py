"""docs/README.md names every document and command; links and names of tests lead somewhere."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.docs.commands import FURTHER_PAGES, PAGES, PROGRAMS, ROOT, program_of


def test_every_document_is_in_the_index() -> None:
    index = (ROOT / "docs" / "README.md").read_text()
    assert [page.name for page in PAGES if page.name != "README.md" and f"]({page.name})" not in index] == []


def test_every_command_is_in_the_index() -> None:
    text = (ROOT / "docs" / "README.md").read_text()
    names = [name for program in PROGRAMS for name in program_of(program).commands]
    assert [name for name in names if f"| `{name}` |" not in text] == []


@pytest.mark.parametrize("page", [*PAGES, *FURTHER_PAGES], ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    for target, anchor in re.findall(r"\]\(([^):#]*)(?:#([^)]*))?\)", page.read_text()):
        found = page.parent / target if target else page
        assert found.exists(), target
        headings = re.findall(r"^#+ (.*)$", found.read_text(), re.MULTILINE) if anchor else []
        assert not anchor or anchor in [re.sub(r"[^\w -]", "", line).lower().replace(" ", "-") for line in headings]


def test_every_promise_names_tests_that_exist() -> None:
    rows = re.findall(r"^\| (?!promise \|).* \| (.*) \|$", (ROOT / "docs" / "guarantees.md").read_text(), re.MULTILINE)
    files = list((ROOT / "tests").rglob("test_*.py"))
    functions = {
        name for path in files for name in re.findall(r"^ *(?:async )?def (test_\w+)", path.read_text(), re.MULTILINE)
    }
    known = functions | {path.name for path in files} | {"lint-imports", "pyproject.toml"}
    named = [name for row in rows for name in re.findall(r"`([^`]+)`", row)]
    assert len(named) >= len(rows) > 100
    assert [name for name in named if name not in known and not ("/" in name and (ROOT / name).exists())] == []
