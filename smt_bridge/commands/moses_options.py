"""The options of commands that run Moses: its program, its threads, its time, and what is passed on to it."""

from __future__ import annotations

import argparse
import math
import shlex

from nmt_core.base.errors import ConfigError
from nmt_core.commands.parser import positive
from smt_bridge.moses.command_line import check_further_options


def add_moses_arguments(group: argparse._ActionsContainer) -> None:
    """Declare ``--moses``, ``--moses-threads`` and ``--moses-timeout``."""
    add = group.add_argument
    add("--moses", default="moses", metavar="PROGRAM", help="the decoder (moses)")
    add("--moses-threads", type=positive, default=1, metavar="N", help="its threads (1)")
    add("--moses-timeout", type=_seconds, default=60.0, metavar="S", help="seconds it may take for a sentence (60)")


def add_moses_options(group: argparse._ActionsContainer) -> None:
    """Declare ``--moses-options``."""
    group.add_argument(
        "--moses-options",
        type=_words,
        default=(),
        metavar="TEXT",
        help="further options, such as '-search-algorithm 1'",
    )


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not 0.0 < seconds < 1e9:
        raise argparse.ArgumentTypeError(f"expected a number of seconds above 0, found {text!r}")
    return seconds


def _words(text: str) -> tuple[str, ...]:
    """The words as a shell takes them apart; commands give some options themselves."""
    try:
        words = tuple(shlex.split(text))
        check_further_options(words, graphs=False)
    except (ValueError, ConfigError) as error:
        raise argparse.ArgumentTypeError(str(error)) from error
    return words
