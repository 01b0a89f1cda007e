"""The models that the options of ``nmt-core serve`` name, and what belongs to each."""

from __future__ import annotations

import argparse
import os
import stat
from collections.abc import Collection, Sequence
from typing import NamedTuple

import torch

from nmt_core.base.errors import ConfigError
from nmt_core.base.words import whole_number
from nmt_core.device import choose_device

_OF_FILE_SYSTEMS = "lost+found"  # at the top of a volume, for root alone


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


def named_folders(arguments: Sequence[str]) -> dict[str, list[str]]:
    """The folders of every NAME=DIR,DIR. Raises ConfigError."""
    folders: dict[str, list[str]] = {}
    for text in arguments:
        name, equals, parts = text.partition("=")
        if not (name and equals and all(parts.split(","))):
            raise ConfigError(f"--model {text}: expected NAME=DIR, or NAME=DIR,DIR for an ensemble")
        if name in folders:
            raise ConfigError(f"--model {text}: there is a model {name} already")
        folders[name] = parts.split(",")
    return folders


def named_lexicons(arguments: Sequence[str], models: Collection[str]) -> dict[str, LexiconChoice]:
    """The lexicon of every NAME=FILE or NAME=FILE,RULE, of one of these models. Raises ConfigError."""
    choices: dict[str, LexiconChoice] = {}
    for text in arguments:
        name, _, choice = text.partition("=")
        path, comma, rule = choice.partition(",")
        if not (name and path) or rule not in (["lexicon", "lexicon-lowercase"] if comma else [""]):
            raise ConfigError(f"--lexicon {text}: expected NAME=FILE, or NAME=FILE,lexicon-lowercase")
        if name in choices or name not in models:
            problem = "has a lexicon already" if name in choices else f"is none of {', '.join(sorted(models))}"
            raise ConfigError(f"--lexicon {text}: the model {name} {problem}")
        choices[name] = LexiconChoice(path, rule or "lexicon")
    return choices


def named_candidates(arguments: Sequence[str], models: Collection[str]) -> dict[str, CandidateChoice]:
    """The candidate lists of every NAME=K or NAME=K,K', of one of these models. Raises ConfigError."""
    choices: dict[str, CandidateChoice] = {}
    for text in arguments:
        name, _, choice = text.partition("=")
        numbers = [number for part in choice.split(",") if (number := whole_number(part)) is not None]
        if not name or len(numbers) > 2 or len(numbers) <= choice.count(",") or numbers[0] < 1:
            problem = "expected NAME=K or NAME=K,L: K frequent words, L of the lexicon for a source word"
            raise ConfigError(f"--candidates {text}: {problem}")
        if name in choices or name not in models:
            problem = "has candidates already" if name in choices else f"is none of {', '.join(sorted(models))}"
            raise ConfigError(f"--candidates {text}: the model {name} {problem}")
        choices[name] = CandidateChoice(*numbers)
    return choices


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
