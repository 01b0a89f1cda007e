"""The options of commands that run Moses: its program, its threads, its time, and what is passed on to it."""

from __future__ import annotations

import argparse
import shlex

from nmt_core.base.errors import ConfigError
from smt_bridge.moses.command_line import check_further_options


def add_moses_arguments(group: argparse._ActionsContainer) -> None:
    """Declare ``--moses``, ``--moses-threads`` and ``--moses-timeout``."""
    add = group.add_argument
    add("--moses", default="moses", metavar="PROGRAM", help="the decoder (moses)")
    add("--moses-threads", type=int, default=1, metavar="N", help="its threads (1)")
    add("--moses-timeout", type=float, default=60.0, metavar="S", help="seconds it may take for a sentence (60)")


def check_moses_arguments(args: argparse.Namespace) -> None:
    """Raise ConfigError for numbers that cannot be."""
    if args.moses_threads < 1 or not 0.0 < args.moses_timeout < 1e9:
        raise ConfigError("--moses-threads must be above 0, --moses-timeout a number of seconds above 0")


def add_moses_options(group: argparse._ActionsContainer) -> None:
    """Declare ``--moses-options``."""
    group.add_argument(
        "--moses-options", default="", metavar="TEXT", help="further options, such as '-search-algorithm 1'"
    )


def option_words(options: str, *, graphs: bool = False) -> tuple[str, ...]:
    """As a shell takes them apart. Raises ConfigError, also as ``check_further_options``."""
    try:
        words = tuple(shlex.split(options))
    except ValueError as error:
        raise ConfigError(f"--moses-options {options}: {str(error).lower()}") from error
    try:
        check_further_options(words, graphs=graphs)
    except ConfigError as error:
        raise ConfigError(f"--moses-options: {error}") from error
    return words
