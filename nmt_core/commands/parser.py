"""The parser of command lines: one line for what is wrong in them, with what was probably meant.

>>> closest("--modle", ["--model", "--beam"])
'; did you mean --model?'
>>> closest("--frobnicate", ["--model", "--beam"])
''
"""

from __future__ import annotations

import argparse
import difflib
import math
import re
import sys
from collections.abc import Iterable, Mapping
from typing import Any, NoReturn

from nmt_core.base.messages import say
from nmt_core.base.numbers import whole_number

_MOST_DIGITS = 18  # as many as 64 bits hold, whatever they are
_ALIKE = 0.7  # of difflib's ratio: letters missing, doubled or exchanged


class Parser(argparse.ArgumentParser):
    """A parser that looks for unknown options and commands before it complains of anything else.

    What begins as a negative number, such as ``-1e-5`` or ``-1,0``, is a value; argparse knows only ``-0.00001``.
    An option of ``type=int`` takes no more digits than 64 bits hold, one of ``type=float`` no ``nan``.
    """

    _commands: Mapping[str, Any] | None = None

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._negative_number_matcher = re.compile(r"-\.?[0-9]")
        self.register("type", int, _whole)
        self.register("type", float, _number)

    def add_subparsers(self, **options: Any) -> Any:
        """As in argparse; the commands are remembered."""
        commands = super().add_subparsers(**options)
        self._commands = commands.choices
        return commands

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """As in argparse, which would report what is missing before what is mistyped."""
        words = sys.argv[1:] if args is None else list(args)
        for word in words:
            if word == "--" or (self._commands is not None and not word.startswith("-")):
                break
            if word.startswith("--") and " " not in word:
                self._check_option(word.partition("=")[0])
        command = self.first_positional(words)
        if self._commands is not None and command is not None and command not in self._commands:
            self.error(f"there is no command {command!r}{closest(command, self._commands)}")
        found, left = super().parse_known_args(words, namespace)
        if left and self._commands is None:
            self.error(f"these arguments are too many: {' '.join(left)}")
        return found, left

    def first_positional(self, words: Iterable[str]) -> str | None:
        """The first word that is neither an option nor the value of one."""
        rest = iter(words)
        for word in rest:
            if not word.startswith("-"):
                return word
            option = self._option_string_actions.get(word)
            if option is not None and option.nargs != 0:
                next(rest, None)
        return None

    def error(self, message: str) -> NoReturn:
        """End with exit code 2 and one line."""
        say(f"{self.prog}: {message} ('{self.prog} --help' explains)")
        sys.exit(2)

    def _check_option(self, name: str) -> None:
        known = self._option_string_actions
        if not any(option.startswith(name) for option in known):
            self.error(f"there is no option {name}{closest(name, known)}")


def _whole(text: str) -> int:
    """The value of a number option. Raises ValueError, which argparse reports with the text."""
    if len(text) > _MOST_DIGITS:
        raise ValueError
    return int(text)


def _number(text: str) -> float:
    """The same, with a point; infinity is for the command to judge."""
    number = float(text)
    if math.isnan(number):
        raise ValueError
    return number


def closest(word: str, known: Iterable[str]) -> str:
    """What to add to a message about an unknown word: the known one that is most like it, if any is."""
    found = difflib.get_close_matches(word, known, n=1, cutoff=_ALIKE)
    return f"; did you mean {found[0]}?" if found else ""


def positive(text: str) -> int:
    """The ``type`` of options that are whole numbers from 1 up."""
    return _from(1, text)


def from_zero(text: str) -> int:
    """The ``type`` of options that are whole numbers from 0 up."""
    return _from(0, text)


def _from(least: int, text: str) -> int:
    value = whole_number(text)
    if value is None or value < least:
        raise argparse.ArgumentTypeError(f"expected a whole number from {least} up, found {text!r}")
    return value
