"""Which arguments name files: no output is the same file as an input, outputs can be made, no pipe is read twice."""

from __future__ import annotations

import argparse
import os
import stat
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, TypeVar

from nmt_core.base.errors import ConfigError, input_name
from nmt_core.files.output import check_output


class InputFile(str):
    """The type of an argument that names a file to read, ``-`` for standard input, or a directory of files."""

    @property
    def path(self) -> str:
        """The file; empty where the argument names none."""
        return str(self)


class NamedInput(InputFile):
    """The type of an argument ``NAME=FILE`` or ``NAME``."""

    @property
    def path(self) -> str:
        """The file; empty where the argument names none."""
        return self.partition("=")[2]


class OutputFile(str):
    """The type of an argument that names a file to write, ``-`` for standard output."""


class OutputDirectory(str):
    """The type of an argument that names a directory to write."""


Kind = TypeVar("Kind", InputFile, OutputFile, OutputDirectory)
_SAME_FILE = (stat.S_ISREG, stat.S_ISFIFO, stat.S_ISDIR)


def check_files(args: argparse.Namespace) -> None:
    """Raise ConfigError where an output is an input, by whatever name, two outputs are one file, or inputs one pipe.

    Raises NmtError where an output could not be made.
    """
    inputs: dict[object, tuple[str, str]] = {}
    for option, given in _of_type(args, InputFile):
        found = identity(given.path, 0)
        if found in inputs and (given.path == "-" or Path(given.path).is_fifo()):
            problem = f"is given for {inputs[found][0]} and for {option}, but can be read only once; give files"
            raise ConfigError(f"{input_name(given.path)} {problem}")
        inputs[found] = option, given.path
    outputs: dict[object, str] = {}
    for option, path in [*_of_type(args, OutputFile), *_of_type(args, OutputDirectory)]:
        found = identity(path, 1)
        shown = f"{option}: {'standard output' if path == '-' else path}"
        if found is not None and found in inputs:
            read = input_name(inputs[found][1])
            raise ConfigError(f"{shown} is also read, as {read}, and would be lost; give another name")
        if found is not None and found in outputs:
            raise ConfigError(f"{shown} is also {outputs[found]}; give each output a name of its own")
        outputs[found] = shown
    for option, path in _of_type(args, OutputFile):
        directory = identity(os.path.dirname(os.path.realpath(path)), 1)
        if path != "-" and directory in inputs:
            raise ConfigError(f"{option}: {path} lies in {inputs[directory][1]}, which is read; name another directory")
        check_output(path)


def _of_type(args: argparse.Namespace, kind: type[Kind]) -> Iterator[tuple[str, Kind]]:
    """The arguments of that type, in lists and tuples too, by option."""
    waiting: list[tuple[str, Any]] = list(vars(args).items())
    for option, value in waiting:
        if isinstance(value, (list, tuple)):
            waiting += [(option, one) for one in value]
        elif isinstance(value, kind):
            yield option.replace("_", "-"), value


def identity(path: str, descriptor: int) -> object:
    """Equal for two names of one file; None for what may well be read and written, such as a terminal.

    ``-`` is standard input or output, as the ``descriptor`` 0 or 1 says.
    """
    try:
        found = os.fstat((sys.stdin, sys.stdout)[descriptor].fileno()) if path == "-" else os.stat(path)
    except (OSError, ValueError, AttributeError):  # it is not there, or a standard stream is closed or no file
        return ("-", descriptor) if path == "-" else os.path.realpath(path)
    if any(same(found.st_mode) for same in _SAME_FILE):
        return found.st_dev, found.st_ino
    return ("-", descriptor) if path == "-" else None


def overwritten(read: Iterable[str], written: Iterable[str]) -> str | None:
    """The first file of ``read`` that is also one of ``written``, by whatever names; None where there is none."""
    outputs = {identity(path, 1) for path in written} - {None}
    return next((path for path in read if identity(path, 0) in outputs), None)
