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
from collections.abc import Iterable
from typing import Any, NoReturn

from nmt_core.base.messages import say
from nmt_core.base.words import whole_number

_ALIKE = 0.7  # of difflib's ratio: letters missing, doubled or exchanged


class Parser(argparse.ArgumentParser):
    """A parser that looks for unknown options and commands before it complains of anything else.

    What begins as a negative number, such as ``-1e-5`` or ``-1,0``, is a value; argparse knows only ``-0.00001``.
    An option of ``type=int`` takes a whole number from 0 up, one of ``type=float`` no ``nan``.
    """

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._negative_number_matcher = re.compile(r"-\.?[0-9]")
        self.register("type", int, _whole)
        self.register("type", float, _number)

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """As in argparse, which would report what is missing before what is mistyped."""
        words = sys.argv[1:] if args is None else list(args)
        commands, known = self._subparsers, self._option_string_actions
        for word in words:
            if word == "--":
                break
            if commands is not None and not word.startswith("-"):
                names = [*(commands._group_actions[0].choices or ())]
                if word not in names:
                    self.error(f"there is no command {word!r}{closest(word, names)}")
                break
            name = word.partition("=")[0]
            if word.startswith("--") and " " not in word and not any(option.startswith(name) for option in known):
                self.error(f"there is no option {name}{closest(name, known)}")
        found, left = super().parse_known_args(words, namespace)
        if left and commands is None:
            self.error(f"these arguments are too many: {' '.join(left)}")
        return found, left

    def error(self, message: str) -> NoReturn:
        """End with exit code 2 and one line."""
        say(f"{self.prog}: {message} ('{self.prog} --help' explains)")
        sys.exit(2)


def _whole(text: str) -> int:
    """The value of a number option. Raises ValueError, which argparse reports with the text."""
    value = whole_number(text)
    if value is None:
        raise ValueError
    return value


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
    value = whole_number(text)
    if not value:
        raise argparse.ArgumentTypeError(f"expected a whole number from 1 up, found {text!r}")
    return value
