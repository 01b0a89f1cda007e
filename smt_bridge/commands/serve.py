"""`smt-bridge serve`: hybrids of Moses and a neural model over gRPC, beside neural models."""

from __future__ import annotations

import argparse

from nmt_core.base.errors import ConfigError, NmtError
from nmt_core.commands import serve as neural
from nmt_core.files import NamedInput
from smt_bridge.commands.moses_options import add_moses_arguments

NAME = "serve"
_EPILOG = """example:
  smt-bridge serve --hybrid en-fr=hybrid.json --model en-fr-neural=runs/search --port 50551
  nmt-core client translate --address localhost:50551 --model en-fr < test.tok.en > test.fr

A recipe is written by `smt-bridge tune --recipe`. The program `moses` must be on the PATH (or --moses PROGRAM); it
runs in the current folder, where the paths of moses.ini must be right. All other options are those of `nmt-core
serve`."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options: those of ``nmt-core serve``, and what a hybrid has."""
    group = parser.add_argument_group("hybrids")
    group.add_argument(
        "--hybrid",
        type=NamedInput,
        action="append",
        default=[],
        metavar="NAME=RECIPE",
        help="a recipe and its name; repeatable",
    )
    add_moses_arguments(group)
    group.add_argument(
        "--degrade",
        action="store_true",
        help="where Moses cannot be used, answer with the neural model alone, not with UNAVAILABLE",
    )
    neural.add_arguments(parser)
    parser.epilog = _EPILOG
    parser.set_defaults(program=f"smt-bridge {NAME}")


def run(args: argparse.Namespace) -> int:
    """Load the models, start Moses, and serve until stopped."""
    recipes = _recipes(args)
    try:
        from nmt_core.serving.command import serve
        from smt_bridge.serving.hybrid_models import HybridModels, MosesChoice
    except ImportError as error:
        raise NmtError(f"serving needs gRPC ({error.name} is missing): pip install 'hybridmt[serve]'") from error
    choice = MosesChoice(args.moses, args.moses_threads, args.moses_timeout, args.degrade)
    return serve(args, HybridModels(recipes, choice))


def _recipes(args: argparse.Namespace) -> dict[str, str]:
    """The path of each recipe, by name. Raises ConfigError."""
    recipes: dict[str, str] = {}
    for text in args.hybrid:
        name, _, path = text.partition("=")
        if not (name and path):
            raise ConfigError(f"--hybrid {text}: expected NAME=RECIPE")
        if name in recipes:
            raise ConfigError(f"--hybrid {text}: there is a hybrid {name} already")
        recipes[name] = path
    if not recipes:
        raise ConfigError("give --hybrid NAME=RECIPE; neural models alone are served by `nmt-core serve`")
    return recipes
