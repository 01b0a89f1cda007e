"""The models that the options of ``nmt-core serve`` name, and what belongs to each."""

from __future__ import annotations

import argparse
import os
import re
import stat
from collections.abc import Collection, Sequence
from typing import NamedTuple

import torch

from nmt_core.base.errors import ConfigError
from nmt_core.device import choose_device

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


class LexiconChoice(NamedTuple):
    """A lexicon for ``<unk>`` and for candidate lists, and the rule of its use for ``<unk>``."""

    path: str
    rule: str = "lexicon"


class CandidateChoice(NamedTuple):
    """How many frequent words candidate lists have, and how many of the lexicon for each source word."""

    frequent: int
    per_word: int = 10


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


def named_folders(arguments: Sequence[str]) -> dict[str, list[str]]:
    """The directories of every model."""
    return {name: value[0].split(",") for name, value in named("model", arguments).items()}


def named_lexicons(arguments: Sequence[str], models: Collection[str]) -> dict[str, LexiconChoice]:
    """The lexicon of each model that has one."""
    values = named("lexicon", arguments, models)
    return {name: LexiconChoice(value[1], value[2] or "lexicon") for name, value in values.items()}


def named_candidates(arguments: Sequence[str], models: Collection[str]) -> dict[str, CandidateChoice]:
    """The candidate lists of each model that has them."""
    values = named("candidates", arguments, models)
    return {name: CandidateChoice(*map(int, value[0].split(","))) for name, value in values.items()}


def read_devices(args: argparse.Namespace) -> list[str]:
    """The devices to serve on. Raises ConfigError."""
    devices = [str(choose_device(name)) for name in args.device.split(",")]
    if len(set(devices)) < len(devices):
        raise ConfigError(f"--device {args.device}: a device is named twice")
    if args.threads is not None:
        if args.threads < 1:
            raise ConfigError(f"--threads {args.threads}: expected at least 1")
        torch.set_num_threads(args.threads)
    return devices
