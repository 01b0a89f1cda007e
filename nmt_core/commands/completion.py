"""``--print-completion SHELL``: a script that makes a shell complete commands, options and files."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import Any

COMPLETION = "--print-completion"
SHELLS = ("bash", "zsh", "fish", "tcsh")
_NO_FILES = (int, float)


class PrintCompletion(argparse.Action):
    """Write the script of a shell on standard output, and end."""

    def __call__(self, parser: argparse.ArgumentParser, *args: Any) -> None:
        """``args`` are the namespace, the shell and the option. Raises ModuleNotFoundError without shtab."""
        import shtab

        for action in _arguments(parser):
            action.complete = shtab.FILE  # type: ignore[attr-defined]  # an attribute that shtab looks for
        print(shtab.complete(parser, shell=args[1]))
        parser.exit()


def _arguments(parser: argparse.ArgumentParser) -> Iterator[argparse.Action]:
    """The arguments of all commands that may be files or folders."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for command in action.choices.values():
                yield from _arguments(command)
        elif action.nargs != 0 and action.choices is None and action.type not in _NO_FILES:
            yield action
