"""The examples in docstrings are what the functions give."""

from __future__ import annotations

import doctest
import importlib

import pytest

from tests.docs.commands import ROOT

FILES = [path for package in ("nmt_core", "smt_bridge") for path in sorted((ROOT / package).rglob("*.py"))]
MODULES = [".".join(path.relative_to(ROOT).with_suffix("").parts) for path in FILES if ">>> " in path.read_text()]


@pytest.mark.parametrize("name", MODULES)
def test_an_example_gives_what_stands_below_it(name: str) -> None:
    found = doctest.testmod(importlib.import_module(name))
    assert found.attempted and not found.failed
