"""Which options name files that are read and files that are written: no file is both, and outputs can be made.

No pipe is read twice.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import stat
import sys
from collections.abc import Iterator
from typing import Any, ClassVar

from nmt_core.errors import ConfigError, input_name
from nmt_core.files.writing import check_output


class InputFile(str):
    """The type of an argument that names a file to read, ``-`` for standard input."""


class InputBehind(str):
    """The type of an argument that names a file to read behind a sign: ``separator`` of the subclass."""

    separator: ClassVar[str]

    @property
    def file(self) -> InputFile | None:
        """The file, None where the argument names none."""
        path = self.partition(self.separator)[2]
        return InputFile(path) if path else None


class NamedInput(InputBehind):
    """The type of an argument ``NAME=FILE`` or ``NAME``."""

    separator = "="


class OutputFile(str):
    """The type of an argument that names a file to write, ``-`` for standard output."""


def check_files(args: argparse.Namespace) -> None:
    """Raise ConfigError where an output is an input, by whatever name, two outputs are one file, or inputs one pipe.

    Raises NmtError where an output could not be made.
    """
    _check_pipes(args)
    inputs = {identity: path for _, path in _of_type(args, InputFile) for identity in _identities(path)}
    outputs: dict[object, str] = {}
    for name, path in _of_type(args, OutputFile):
        identity = _identity(path, 1)
        if identity is None:
            continue
        if identity in inputs:
            raise ConfigError(
                f"{_shown(name, path)} is also read, as {inputs[identity]}, and would be lost; give another name"
            )
        if identity in outputs:
            raise ConfigError(f"{_shown(name, path)} is also {outputs[identity]}; give each output a name of its own")
        outputs[identity] = _shown(name, path)
    for _, path in _of_type(args, OutputFile):
        check_output(path)


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
        found = os.fstat(_number(0)) if path == "-" else os.stat(path)
    except (OSError, ValueError):
        return path if path == "-" else None
    if stat.S_ISFIFO(found.st_mode):
        return found.st_dev, found.st_ino
    return path if path == "-" else None


def input_files(args: argparse.Namespace) -> list[str]:
    """The files to read that the arguments name, without standard input."""
    return [str(path) for _, path in _of_type(args, InputFile) if path != "-"]


def _of_type(args: argparse.Namespace, kind: type[str]) -> Iterator[tuple[str, str]]:
    for name, value in vars(args).items():
        for path in _flat(value):
            if isinstance(path, kind):
                yield name, path


def _flat(value: Any) -> Iterator[Any]:
    """The value, its elements, or the file that is named in it."""
    if isinstance(value, (list, tuple)):
        for element in value:
            yield from _flat(element)
    elif isinstance(value, InputBehind):
        yield value.file
    else:
        yield value


def _identities(path: str) -> Iterator[object]:
    """That of an input, and of a folder those of what lies in it."""
    yield _identity(path, 0)
    with contextlib.suppress(OSError, ValueError):  # is no folder, or cannot be read, which is said later
        for entry in os.scandir(path) if path != "-" else ():
            yield _identity(entry.path, 0)


def _identity(path: str, descriptor: int) -> object:
    """Equal for two names of one file; None for what may well be read and written, such as a terminal."""
    try:
        found = os.fstat(_number(descriptor)) if path == "-" else os.stat(path)
    except (OSError, ValueError):
        return ("-", descriptor) if path == "-" else os.path.realpath(path)
    if stat.S_ISREG(found.st_mode) or stat.S_ISFIFO(found.st_mode):
        return found.st_dev, found.st_ino
    return ("-", descriptor) if path == "-" else None


def _number(descriptor: int) -> int:
    """The descriptor of what Python takes for standard input or output."""
    stream = (sys.stdin, sys.stdout)[descriptor]
    with contextlib.suppress(AttributeError):
        return stream.fileno()
    raise OSError


def _shown(name: str, path: str) -> str:
    option = f"--{name.replace('_', '-')}"
    return f"{option} (standard output)" if path == "-" else f"{option} {path}"
