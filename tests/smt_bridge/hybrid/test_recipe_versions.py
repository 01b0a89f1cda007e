"""Recipes of other versions, and those that say none."""

from __future__ import annotations

import pytest

from nmt_core.base.errors import InputError
from smt_bridge.recipe import FORMAT, VERSION, parse_recipe


@pytest.mark.parametrize("version", [{}, {"version": None}, {"version": VERSION - 1}, {"version": str(VERSION)}])
def test_a_recipe_of_another_version_or_none_is_named(version: dict[str, object]) -> None:
    with pytest.raises(InputError, match=f"is a recipe of version .*; this program reads {VERSION}"):
        parse_recipe({"format": FORMAT, **version}, "recipe")
