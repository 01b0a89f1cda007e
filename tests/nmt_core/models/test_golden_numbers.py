"""Every model computes what it computed at commit 74a31b7, to 1e-6, and loads what was saved there."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.nmt_core.models.golden_numbers import CONFIGS, GOLDEN, KINDS, folders

NUMBERS = json.loads((GOLDEN / "numbers.json").read_text())


def assert_same(found: Any, wanted: Any, where: str) -> None:
    if isinstance(wanted, dict):
        assert found.keys() == wanted.keys(), where
        for key, value in wanted.items():
            assert_same(found[key], value, f"{where}, {key}")
    elif isinstance(wanted, list):
        assert len(found) == len(wanted), where
        for place, value in enumerate(wanted):
            assert_same(found[place], value, f"{where}, {place}")
    else:
        assert found == pytest.approx(wanted, rel=1e-6, abs=1e-6), where


@pytest.mark.parametrize("name", CONFIGS)
@pytest.mark.parametrize("kind", KINDS)
def test_numbers_are_those_of_commit_74a31b7(kind: str, name: str) -> None:
    assert_same(KINDS[kind](CONFIGS[name]), NUMBERS[kind][name], kind)


def test_model_folders_of_commit_74a31b7_score_the_same() -> None:
    assert_same(dict(folders()), NUMBERS["folders"], "folders")
