"""Which options name files that are read and files that are written: no file is both, and outputs can be made.

An option says by its type what is read or written for it: the file itself, files that this one names, those of a
model's folder, a record beside it. No pipe is read twice.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import stat
from collections.abc import Iterable, Iterator
from typing import Any, ClassVar, TypeVar

from nmt_core.base.errors import ConfigError, input_name
from nmt_core.files.identity import identity, number_of
from nmt_core.files.target import check_output

Kind = TypeVar("Kind", bound=str)
_STANDARD_OUTPUT = "standard_output"  # of a command that has no option for it


class Input(str):
    """The type of an argument that names something to read."""

    def files(self) -> Iterable[str]:
        """The files that are read for it, none of which is to be written."""
        return (str(self),)


class InputFile(Input):
    """The type of an argument that names a file to read, or a folder of files, ``-`` for standard input."""

    def files(self) -> Iterable[str]:
        """The file, or the folder and what lies in it."""
        yield str(self)
        with contextlib.suppress(OSError, ValueError):  # is no folder, or cannot be read, which is said later
            for entry in os.scandir(self) if self != "-" else ():
                yield entry.path


class InputBehind(Input):
    """The type of an argument that names a file to read behind a sign: ``separator`` of the subclass."""

    separator: ClassVar[str]

    @property
    def file(self) -> InputFile | None:
        """The file, None where the argument names none."""
        path = self.partition(self.separator)[2]
        return InputFile(path) if path else None

    def files(self) -> Iterable[str]:
        """Those of the file."""
        return () if self.file is None else self.file.files()


class NamedInput(InputBehind):
    """The type of an argument ``NAME=FILE`` or ``NAME``."""

    separator = "="


class Output(str):
    """The type of an argument that names something to write."""

    def files(self) -> Iterable[str]:
        """The files that are written for it."""
        return (str(self),)


class OutputFile(Output):
    """The type of an argument that names a file to write, ``-`` for standard output."""


def writes_standard_output(parser: argparse.ArgumentParser) -> None:
    """Let ``check_files`` know that a command without an option for its output writes to standard output."""
    parser.set_defaults(**{_STANDARD_OUTPUT: Output("-")})


def check_files(args: argparse.Namespace) -> None:
    """Raise ConfigError where an output is an input, by whatever name, two outputs are one file, or inputs one pipe.

    Raises NmtError where an output could not be made.
    """
    _check_pipes(args)
    inputs = {
        identity(file, 0): _shown_input(given, file) for _, given in _of_type(args, Input) for file in given.files()
    }
    outputs: dict[object, str] = {}
    for name, given in _of_type(args, Output):
        for file in given.files():
            found, shown = identity(file, 1), _shown_output(name, given, file)
            if found is None:
                continue
            if found in inputs:
                raise ConfigError(f"{shown} is also read, as {inputs[found]}, and would be lost; give another name")
            if found in outputs:
                raise ConfigError(f"{shown} is also {outputs[found]}; give each output a name of its own")
            outputs[found] = shown
    for _, given in _of_type(args, OutputFile):
        for file in given.files():
            check_output(file)


def _check_pipes(args: argparse.Namespace) -> None:
    """Raise ConfigError where standard input or another pipe is to be read twice: each would get a part of it."""
    pipes: dict[object, str] = {}  # and for what
    for name, path in _of_type(args, InputFile):
        pipe = _pipe(path)
        if pipe is None:
            continue
        shown = name.replace("_", "-")
        if pipe in pipes:
            both = f"{pipes[pipe]} and for {shown}"
            raise ConfigError(f"{input_name(path)} is given for {both}, but can be read only once; give files")
        pipes[pipe] = shown


def _pipe(path: str) -> object:
    """Equal for two names of one pipe; None for what can be opened again and read from its beginning."""
    try:
        found = os.fstat(number_of(0)) if path == "-" else os.stat(path)
    except (OSError, ValueError):
        return path if path == "-" else None
    if stat.S_ISFIFO(found.st_mode):
        return found.st_dev, found.st_ino
    return path if path == "-" else None


def input_files(args: argparse.Namespace) -> list[str]:
    """The files to read that the arguments name, without standard input."""
    return [str(path) for _, path in _of_type(args, InputFile) if path != "-"]


def _of_type(args: argparse.Namespace, kind: type[Kind]) -> Iterator[tuple[str, Kind]]:
    """The arguments of that type, by option; an ``InputBehind`` is an ``InputFile`` where one is looked for."""
    for name, value in vars(args).items():
        for given in _flat(value):
            if isinstance(given, kind):
                yield name, given
            elif isinstance(given, InputBehind) and isinstance(given.file, kind):
                yield name, given.file


def _flat(value: Any) -> Iterator[Any]:
    """The value, or its elements."""
    if isinstance(value, (list, tuple)):
        for element in value:
            yield from _flat(element)
    else:
        yield value


def _shown_input(given: str, file: str) -> str:
    known = given.endswith(file) or file.startswith(given)  # from one of them people know the other
    return input_name(file) if known else f"{file} of {given}"


def _shown_output(name: str, given: str, file: str) -> str:
    if name == _STANDARD_OUTPUT:
        return "standard output"
    option = f"--{name.replace('_', '-')}"
    if file == "-":
        return f"{option} (standard output)"
    return f"{option} {file}" if file == given else f"{file} of {option} {given}"
