"""The models of a server, from its options and from plugins, and how they are loaded.

Another package adds models by an entry point of the group ``hybridmt.served_models``; ``hybrid`` is ``--hybrid``'s.
"""

from __future__ import annotations

import argparse
import functools
import os
import re
import stat
from collections.abc import Callable, Collection, Mapping, Sequence
from importlib import metadata
from typing import Any, Protocol

from prometheus_client import CollectorRegistry

from nmt_core.base.errors import ConfigError
from nmt_core.inference.search.config import DecodingConfig
from nmt_core.serving.limits import Limits
from nmt_core.serving.models.device import Load
from nmt_core.serving.models.opening import CandidateChoice, LexiconChoice, open_served_model
from nmt_core.serving.models.served import ServedModel

GROUP = "hybridmt.served_models"

OpenModel = Callable[[Sequence[str]], ServedModel]
"""The model, or ensemble, of these directories on the device; one that is served already is not loaded again."""


class PluginModels(Protocol):
    """Models that are made of neural ones and of something else."""

    @property
    def names(self) -> Sequence[str]:
        """The names of all of them; none is that of another model of the server."""
        ...

    def load(self, open_model: OpenModel) -> Mapping[str, ServedModel]:
        """Make them; called in a thread, again for every reload. Raises NmtError."""
        ...

    def watch(self, registry: CollectorRegistry) -> None:
        """Add their metrics; called once, before ``load``."""
        ...

    def close(self) -> None:
        """End what they have started; called once, when the server has ended."""
        ...


_OF_FILE_SYSTEMS = "lost+found"  # at the top of a volume, for root alone
_FORMS = {
    "model": ("[^,]+(?:,[^,]+)*", "NAME=DIR, or NAME=DIR,DIR for an ensemble"),
    "lexicon": ("([^,]+)(?:,(lexicon|lexicon-lowercase))?", "NAME=FILE, or NAME=FILE,lexicon-lowercase"),
    "candidates": (
        "0*[1-9][0-9]{0,17}(?:,[0-9]{1,18})?",
        "NAME=K or NAME=K,L: K frequent words, L of the lexicon for a source word",
    ),
    "hybrid": (".+", "NAME=RECIPE"),
}


def open_hybrids(arguments: Sequence[str]) -> PluginModels | None:
    """The hybrids of every NAME=RECIPE, if any. Raises ConfigError."""
    recipes = {name: value[0] for name, value in named("hybrid", arguments).items()}
    if not recipes:
        return None
    try:
        (found,) = metadata.entry_points(group=GROUP, name="hybrid")
        make: Callable[[Mapping[str, str]], PluginModels] = found.load()
    except (ValueError, ImportError) as error:
        raise ConfigError(
            "--hybrid needs the package smt_bridge, which is not installed: pip install hybridmt"
        ) from error
    return make(recipes)


def served_folders(args: argparse.Namespace, plugins: PluginModels | None) -> dict[str, list[str]]:
    """The directories of all models but the ``plugins`` ones. Raises ConfigError."""
    folders = {name: value[0].split(",") for name, value in named("model", args.model).items()}
    hybrids = plugins.names if plugins else ()
    for name, parts in (model_folders(args.models) if args.models else {}).items():
        if name in folders:
            raise ConfigError(f"--models {args.models}: there is a model {name} already")
        folders[name] = parts
    if not folders and not hybrids:
        raise ConfigError("no model: give --model NAME=DIR, --models DIR or --hybrid NAME=RECIPE")
    if twice := sorted(folders.keys() & set(hybrids)):
        raise ConfigError(f"two models are called {twice[0]}")
    return folders


def model_loader(args: argparse.Namespace, device: str, plugins: PluginModels | None, limits: Limits) -> Load:
    """What loads the models on a device. Raises ConfigError."""
    folders = served_folders(args, plugins)
    lexicons, candidates = (named(option, getattr(args, option), folders) for option in ("lexicon", "candidates"))
    lexicon_of = {name: LexiconChoice(value[1], value[2] or "lexicon") for name, value in lexicons.items()}
    candidates_of = {name: CandidateChoice(*map(int, value[0].split(","))) for name, value in candidates.items()}
    if args.beam > limits.beam:
        raise ConfigError(f"--beam {args.beam}: at most {limits.beam}")
    defaults = DecodingConfig.from_mapping({"beam": args.beam}, origin="--beam")

    def load() -> Mapping[str, ServedModel]:
        options: dict[str, Any] = {"device": device, "dtype": args.dtype, "decode_tokens": limits.batch * args.beam}

        @functools.cache
        def of_folders(
            parts: tuple[str, ...], lexicon: LexiconChoice | None, candidates: CandidateChoice | None
        ) -> ServedModel:
            return open_served_model(parts, defaults, lexicon=lexicon, candidates=candidates, **options)

        models = {
            name: of_folders(tuple(parts), lexicon_of.get(name), candidates_of.get(name))
            for name, parts in folders.items()
        }
        if plugins is not None:  # all arguments are given, so that a model that is served already has the same key
            models |= plugins.load(lambda parts: of_folders(tuple(parts), None, None))
        return models

    return load


def model_folders(root: str) -> dict[str, list[str]]:
    """The models in a folder of model folders, by name. Raises ConfigError for none, and for what cannot be read."""
    try:
        names = sorted(entry.name for entry in os.scandir(root) if entry.is_dir() and not entry.name.startswith("."))
    except OSError as error:
        raise ConfigError(f"--models {root}: cannot be read ({error.strerror})") from error
    folders = {name: [os.path.join(root, name)] for name in names if name != _OF_FILE_SYSTEMS and _is_model(root, name)}
    if not folders:
        raise ConfigError(f"--models {root}: no model folder (one with a config.yaml) in it")
    return folders


def _is_model(root: str, name: str) -> bool:
    try:
        return stat.S_ISREG(os.stat(os.path.join(root, name, "config.yaml")).st_mode)
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError as error:
        raise ConfigError(f"--models {root}: {name}/config.yaml: cannot be read ({error.strerror})") from error


def named(option: str, arguments: Sequence[str], models: Collection[str] | None = None) -> dict[str, re.Match[str]]:
    """The value of every NAME=VALUE of an option, by name; the names are model names. Raises ConfigError."""
    pattern, expected = _FORMS[option]
    values: dict[str, re.Match[str]] = {}
    for text in arguments:
        name, _, value = text.partition("=")
        match = re.fullmatch(pattern, value, re.DOTALL)
        if not (name and match):
            raise ConfigError(f"--{option} {text}: expected {expected}")
        if name in values:
            raise ConfigError(f"--{option} {text}: {name} was named already")
        if models is not None and name not in models:
            raise ConfigError(f"--{option} {text}: the model {name} is none of {', '.join(sorted(models))}")
        values[name] = match
    return values
