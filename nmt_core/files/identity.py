"""Which names are names of one file: by links of both kinds, by ``..``, and by redirections of the shell."""

from __future__ import annotations

import contextlib
import os
import stat
import sys
from collections.abc import Iterable
from typing import NamedTuple

_SAME_FILE = (stat.S_ISREG, stat.S_ISFIFO, stat.S_ISDIR)


class Overwritten(NamedTuple):
    """A file that is read, by its name, and the name by which it would be written."""

    read: str
    written: str


def overwritten(read: Iterable[str], written: Iterable[str]) -> Overwritten | None:
    """The first file that would be read and written, by whatever names; None where there is none."""
    inputs = {identity(path, 0): path for path in read}
    for path in written:
        found = identity(path, 1)
        if found is not None and found in inputs:
            return Overwritten(inputs[found], path)
    return None


def identity(path: str, descriptor: int) -> object:
    """Equal for two names of one file; None for what may well be read and written, such as a terminal.

    ``-`` is standard input or output, as the ``descriptor`` 0 or 1 says.
    """
    try:
        found = os.fstat(number_of(descriptor)) if path == "-" else os.stat(path)
    except (OSError, ValueError):
        return ("-", descriptor) if path == "-" else os.path.realpath(path)
    if any(same(found.st_mode) for same in _SAME_FILE):
        return found.st_dev, found.st_ino
    return ("-", descriptor) if path == "-" else None


def number_of(descriptor: int) -> int:
    """The descriptor of what Python takes for standard input or output. Raises OSError where that is no file."""
    stream = (sys.stdin, sys.stdout)[descriptor]
    with contextlib.suppress(AttributeError):
        return stream.fileno()
    raise OSError
