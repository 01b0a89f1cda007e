"""Examples in docstrings give what stands below them."""

from __future__ import annotations

import doctest
import importlib
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
_EXAMPLE = re.compile(r"^ *>>> ", re.MULTILINE)
MODULES = [
    ".".join(path.relative_to(ROOT).with_suffix("").parts)
    for package in ("nmt_core", "smt_bridge")
    for path in sorted((ROOT / package).rglob("*.py"))
    if _EXAMPLE.search(path.read_text(encoding="utf-8"))
]


@pytest.mark.parametrize("name", MODULES)
def test_an_example_gives_what_stands_below_it(name: str) -> None:
    found = doctest.testmod(importlib.import_module(name))
    assert found.attempted > 0 and not found.failed
