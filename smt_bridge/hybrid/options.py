"""What the options of `smt-bridge translate` say of how lists are made and how Moses guides the search."""

from __future__ import annotations

import argparse
import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from pydantic import Field

from nmt_core.base.errors import ConfigError
from nmt_core.config import Config, with_overrides
from nmt_core.inference.search.ngram_guidance import FACTORS
from smt_bridge.models import check_ours
from smt_bridge.moses.process import check_further_options
from smt_bridge.recipe import GraphSearch, GuidanceOptions, Recipe, check_names, read_recipe

_DEFAULTS: dict[str, Any] = {"lists": "moses:100,nmt:12", "beam": 12}
_IN_RECIPE = ("model", *_DEFAULTS, "search", "exact", "feature", "moses_options", "write_recipe")
_FACTOR = 100
"""Moses' -n-best-factor."""


class SearchKeys(Config):
    """The keys of ``--search``. ``guidance_weight`` None translates by lists and weights."""

    allow_unknown: bool = False
    graph_gap: float = Field(default=1.0, ge=0.0, le=1000.0)
    graph_beam: int = Field(default=12, ge=1)
    guidance_weight: float | None = Field(default=None, ge=0.0, le=1000.0)
    guidance_scale: float = Field(default=5.0, ge=0.0, le=1000.0)


def recipe_by_options(args: argparse.Namespace) -> Recipe:
    """The recipe, or how lists are made without one. Raises ConfigError."""
    given = [name for name in _IN_RECIPE if getattr(args, name)]
    recipe = _given_recipe(args, given) if args.recipe else _new_recipe(args, given)
    if recipe.guidance or recipe.graph:
        check_ours(recipe.model)
    return recipe


def _given_recipe(args: argparse.Namespace, given: Sequence[str]) -> Recipe:
    """The recipe in a file; ``given`` are options that it excludes.

    ``--moses-ini`` and ``--preparation`` take the place of its own.
    """
    if given:
        option = given[0].replace("_", "-")
        raise ConfigError(f"--{option} and --recipe exclude one another: the recipe says how lists are made")
    recipe = read_recipe(args.recipe)
    preparation = args.preparation or recipe.preparation
    return replace(recipe, moses_ini=args.moses_ini or recipe.moses_ini, preparation=preparation)


def _new_recipe(args: argparse.Namespace, given: Sequence[str]) -> Recipe:
    """How lists are made by the options; ``given`` are those that are not as by default."""
    keys = [one if "=" in one else f"{one}=true" for one in args.search]
    search = SearchKeys.from_mapping(with_overrides({}, keys), origin="--search")
    if not (args.model and args.moses_ini and (args.nbest_output or search.guidance_weight is not None)):
        raise ConfigError(
            "give --recipe, or --model, --moses-ini and --nbest-output to make lists to tune with (--search"
            " guidance_weight=1 instead of the last translates without tuned weights)"
        )
    chosen = _DEFAULTS | {name: getattr(args, name) for name in given if name in _DEFAULTS}
    moses, neural, graph = _sizes(chosen["lists"])
    check_further_options(args.moses_options, graphs=graph > 0)
    recipe = Recipe(
        moses_ini=args.moses_ini,
        moses_nbest=moses,
        moses_factor=_FACTOR,
        model=args.model,
        beam=max(chosen["beam"], neural),
        nmt_nbest=neural,
        forbid_unknown=not search.allow_unknown,
        exact=tuple(args.exact),
        features=tuple(args.feature),
        moses_options=args.moses_options,
        moses_program=args.moses,
        moses_threads=args.moses_threads,
        moses_timeout=args.moses_timeout,
        degrade=args.degrade,
        graph=_graph_search(search, graph),
        guidance=_guidance_of(args, search),
        preparation=args.preparation,
    )
    check_names(recipe)
    return recipe


def _sizes(text: str) -> tuple[int, int, int]:
    """Of the lists of Moses, the model and the search graphs, 0 where there are none."""
    found = re.fullmatch(r"moses:([1-9]\d{0,5}),nmt:([1-9]\d{0,3})(?:,graph:([1-9]\d{0,3}))?", text)
    if not found:
        raise ConfigError(f"--lists must be like moses:100,nmt:12 or moses:20,nmt:12,graph:12, not '{text}'")
    return int(found[1]), int(found[2]), int(found[3] or 0)


def _graph_search(search: SearchKeys, size: int) -> GraphSearch | None:
    """How search graphs are searched; None where they are not. Raises ConfigError."""
    if not size:
        for key in search.model_fields_set & {"graph_gap", "graph_beam"}:
            raise ConfigError(f"--search {key} needs lists of search graphs: --lists …,graph:12")
        return None
    if search.guidance_weight is not None:
        raise ConfigError("--lists with graph: is for lists to tune with; guidance_weight translates without weights")
    return GraphSearch(nbest=size, beam=max(search.graph_beam, size), gap=search.graph_gap)


def _guidance_of(args: argparse.Namespace, search: SearchKeys) -> GuidanceOptions | None:
    """How Moses' lists guide the search; None where they do not. Raises ConfigError."""
    if search.guidance_weight is None:
        if "guidance_scale" in search.model_fields_set:
            raise ConfigError("--search guidance_scale is for guidance_weight")
        if args.write_recipe:
            raise ConfigError("--write-recipe is for guidance_weight; `smt-bridge tune --recipe` writes others")
        return None
    for option in ("exact", "feature"):
        if getattr(args, option):
            raise ConfigError(f"--{option} is for lists to tune with; guidance_weight translates without weights")
    return GuidanceOptions(search.guidance_weight, FACTORS, search.guidance_scale)
