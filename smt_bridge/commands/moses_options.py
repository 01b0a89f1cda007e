"""Options for Moses itself, which commands that run it pass on."""

from __future__ import annotations

import argparse
import shlex

from nmt_core.errors import ConfigError


def add_moses_options(group: argparse._ActionsContainer) -> None:
    """Declare ``--moses-options``."""
    group.add_argument(
        "--moses-options", default="", metavar="TEXT", help="further options, such as '-search-algorithm 1'"
    )


def option_words(options: str) -> tuple[str, ...]:
    """As a shell takes them apart. Raises ConfigError."""
    try:
        return tuple(shlex.split(options))
    except ValueError as error:
        raise ConfigError(f"--moses-options {options}: {str(error).lower()}") from error
