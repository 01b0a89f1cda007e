"""What the options of `smt-bridge translate` say of how lists are made and how Moses advises."""

from __future__ import annotations

import argparse
import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from nmt_core.base.errors import ConfigError
from nmt_core.inference.search.ngram_guidance import FACTORS
from smt_bridge.model_specs import REMOTE
from smt_bridge.moses.command_line import check_further_options
from smt_bridge.recipe import AdviceOptions, GraphSearch, Recipe, check_names, read_recipe

_DEFAULTS: dict[str, Any] = {"lists": "moses:100,nmt:12", "beam": 12, "nbest_factor": 100, "fill": "last"}
_ADVICE = ("advice_weight", "advice_scale")
_GRAPH = {"graph_gap": 1.0, "graph_beam": 12}
_IN_RECIPE = ("model", *_DEFAULTS, *_GRAPH, "allow_unk", "exact", "feature", "moses_options", "write_recipe", *_ADVICE)
_SCALE = 5.0
_MOST = 1000.0


def recipe_of(args: argparse.Namespace) -> Recipe:
    """The recipe, or how lists are made without one. Raises ConfigError."""
    if any(
        number is not None and number < 1 for number in (args.window, args.beam, args.nbest_factor, args.graph_beam)
    ):
        raise ConfigError("--window, --beam, --nbest-factor and --graph-beam must be above 0")
    given = [name for name in _IN_RECIPE if getattr(args, name) or isinstance(getattr(args, name), float)]
    return _given_recipe(args, given) if args.recipe else _new_recipe(args, given)


def _given_recipe(args: argparse.Namespace, given: Sequence[str]) -> Recipe:
    """The recipe in a file, with ``--moses-ini`` in place of its own; ``given`` are options that it has no room for."""
    if given:
        option = given[0].replace("_", "-")
        raise ConfigError(f"--{option} and --recipe exclude one another: the recipe says how lists are made")
    recipe = read_recipe(args.recipe)
    if recipe.weights is None and recipe.advice is None:
        raise ConfigError(f"{args.recipe} has no weights; `smt-bridge tune --recipe` writes them")
    return replace(recipe, moses_ini=args.moses_ini or recipe.moses_ini)


def _new_recipe(args: argparse.Namespace, given: Sequence[str]) -> Recipe:
    """How lists are made by the options; ``given`` are those that are not as by default."""
    if not (args.model and args.moses_ini and (args.nbest_output or args.advice_weight is not None)):
        raise ConfigError(
            "give --recipe, or --model, --moses-ini and --nbest-output to make lists to tune with (--advice-weight in"
            " place of the last translates without tuned weights)"
        )
    chosen = _DEFAULTS | {name: getattr(args, name) for name in given if name in _DEFAULTS}
    moses, neural, graph = _sizes(chosen["lists"])
    check_further_options(args.moses_options, graphs=graph > 0)
    recipe = Recipe(
        moses_ini=args.moses_ini,
        moses_nbest=moses,
        moses_factor=chosen["nbest_factor"],
        model=args.model,
        beam=max(chosen["beam"], neural),
        nmt_nbest=neural,
        forbid_unknown=not args.allow_unk,
        fill=chosen["fill"],
        exact=tuple(args.exact),
        features=tuple(args.feature),
        moses_options=args.moses_options,
        moses_program=args.moses,
        moses_threads=args.moses_threads,
        moses_timeout=args.moses_timeout,
        degrade=args.degrade,
        graph=_graph_search(args, graph),
        advice=_advice_of(args),
    )
    check_names(recipe)
    return recipe


def _sizes(text: str) -> tuple[int, int, int]:
    """Of the lists of Moses, the model and the search graphs, 0 where there are none."""
    found = re.fullmatch(r"moses:([1-9]\d{0,5}),nmt:([1-9]\d{0,3})(?:,graph:([1-9]\d{0,3}))?", text)
    if not found:
        raise ConfigError(f"--lists must be like moses:100,nmt:12 or moses:20,nmt:12,graph:12, not '{text}'")
    return int(found[1]), int(found[2]), int(found[3] or 0)


def _graph_search(args: argparse.Namespace, size: int) -> GraphSearch | None:
    """How search graphs are searched; None where they are not. Raises ConfigError."""
    given = {name: value for name in _GRAPH if (value := getattr(args, name)) is not None}
    if not size:
        if given:
            raise ConfigError(
                f"--{next(iter(given)).replace('_', '-')} needs lists of search graphs: --lists …,graph:12"
            )
        return None
    if args.advice_weight is not None:
        raise ConfigError("--lists with graph: is for lists to tune with; --advice-weight translates without weights")
    if args.model.startswith(REMOTE):
        raise ConfigError(f"{args.model}: a server does not search in graphs; give the folder of its model")
    chosen = _GRAPH | given
    gap = float(chosen["graph_gap"])
    if not 0.0 <= gap <= _MOST:
        raise ConfigError(f"--graph-gap must be from 0 to {_MOST:g}")
    return GraphSearch(nbest=size, beam=max(int(chosen["graph_beam"]), size), gap=gap)


def _advice_of(args: argparse.Namespace) -> AdviceOptions | None:
    """How Moses advises the search; None where it does not. Raises ConfigError."""
    if args.advice_weight is None:
        if args.advice_scale is not None:
            raise ConfigError("--advice-scale is for --advice-weight")
        if args.write_recipe:
            raise ConfigError("--write-recipe is for --advice-weight; `smt-bridge tune --recipe` writes others")
        return None
    for option in ("exact", "feature", "fill"):
        if getattr(args, option):
            raise ConfigError(f"--{option} is for lists to tune with; --advice-weight translates without weights")
    if args.model.startswith(REMOTE):
        raise ConfigError("--advice-weight needs a model in a folder")

    scale = _SCALE if args.advice_scale is None else args.advice_scale
    for name, value in (("weight", args.advice_weight), ("scale", scale)):
        if not 0.0 <= value <= _MOST:
            raise ConfigError(f"--advice-{name} must be from 0 to {_MOST:g}")
    return AdviceOptions(args.advice_weight, FACTORS, scale)
