"""What a recipe may hold, and how others are named."""

from __future__ import annotations

from typing import Any

import pytest

from nmt_core.base.errors import ConfigError, InputError
from smt_bridge.recipe import Recipe, check_signatures, parse_recipe

SMALL: dict[str, Any] = {"format": "hybridmt recipe", "version": 2, "moses_ini": "i", "model": "m", "exact": []}
SMALL |= {"moses_nbest": 100, "moses_factor": 100, "beam": 12, "nmt_nbest": 12, "forbid_unknown": True, "features": []}
GUIDED = {"weight": 1.0, "factors": [1.0], "scale": 1.0}
GRAPH = {"nbest": 1, "beam": 1, "gap": 0.0}


def test_what_is_not_said_has_a_default_and_limits_are_allowed() -> None:
    found = parse_recipe(SMALL, "r")
    assert (found.moses_program, found.moses_threads, found.moses_timeout) == ("moses", 1, 60.0)
    assert (found.degrade, found.preparation, found.systems) == (False, "", ("moses", "nmt"))
    most = {"beam": 1_000_000, "moses_timeout": 999_999_999.0}
    most["guidance"] = {"weight": 1000.0, "factors": [1.0] * 9, "scale": 0.0}
    assert parse_recipe(SMALL | most | {"fill": "last"}, "r").beam == 1_000_000


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"moses_nbest": 0}, "moses_nbest: Input should be greater than or equal to 1"),
        ({"beam": 1_000_001}, "beam: Input should be less than or equal to 1000000"),
        ({"beam": "12"}, "beam: Input should be a valid integer"),
        ({"moses_timeout": 0.0}, "moses_timeout: Input should be greater than 0"),
        ({"moses_timeout": 1e9}, "moses_timeout: Input should be less than 1000000000"),
        ({"guidance": GUIDED | {"weight": 1000.1}}, "guidance.weight: Input should be less than or equal to 1000"),
        ({"guidance": GUIDED | {"scale": -0.1}}, "guidance.scale: Input should be greater than or equal to 0"),
        ({"guidance": GUIDED | {"factors": []}}, "guidance.factors: Tuple should have at least 1 item"),
        ({"guidance": GUIDED | {"factors": [1.0] * 10}}, "guidance.factors: Tuple should have at most 9 items"),
        ({"graph": GRAPH | {"gap": -0.1}}, "graph.gap: Input should be greater than or equal to 0"),
        ({"weights": {"A": [3.5e38]}}, "weights.A.0: Input should be less than or equal to 3402823466385288600"),
        ({"weights": {"A": [1.0]}}, "columns: expected those of moses and nmt); tune again with --recipe"),
        ({"weights": {}, "graph": GRAPH}, "columns: expected those of moses and nmt and graph); tune again"),
    ],
)
def test_a_damaged_recipe_is_named_with_what_is_wrong(change: dict[str, Any], problem: str) -> None:
    with pytest.raises(InputError) as caught:
        parse_recipe(SMALL | change, "r")
    assert str(caught.value).startswith(f"r: is a damaged recipe ({problem}")
    assert str(caught.value).endswith("; tune again with --recipe")


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"format": "x"}, "is not a recipe; `smt-bridge tune --recipe FILE` writes one"),
        ({"version": 1}, "is a recipe of version 1; this program reads 2; make it and its lists again"),
        ({"fill": "zero"}, "has a way to fill columns (`fill`) that is gone; make it and its lists again"),
        ({"guidance": GUIDED, "graph": GRAPH},
         "is a damaged recipe (guidance: expected none beside lists that are merged); write it again"),
        ({"moses_options": ["-th", "2"]},
         "has options for Moses (moses_options) that cannot be used: leave out -th: give --moses-threads"),
    ],
)  # fmt: skip
def test_what_is_no_recipe_of_ours_is_named(change: dict[str, Any], problem: str) -> None:
    with pytest.raises(InputError) as caught:
        parse_recipe(SMALL | change, "r")
    assert str(caught.value) == f"r: {problem}"


def test_signatures_may_differ_by_version_and_machine_alone() -> None:
    recipe: Recipe = parse_recipe(SMALL | {"signatures": {"A": "model:1|dtype:float32|device:cpu|version:1"}}, "r")
    check_signatures(recipe, {"A": "model:1|dtype:float32|device:cuda|gpu:x|version:2", "B": "model:9"})
    with pytest.raises(ConfigError) as caught:
        check_signatures(recipe, {"A": "model:1|dtype:tf32"})
    was = "the column A was tuned with another model or setting: model:1|dtype:float32|device:cpu|version:1"
    remedy = "Tune again, or bring the old model back"
    assert str(caught.value) == f"{was}; now it is model:1|dtype:tf32. {remedy}"
