"""Opening what is read, and reading twice what can be read only once."""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
import sys
import tempfile
from collections.abc import Iterator
from typing import BinaryIO

from nmt_core.errors import InputError
from nmt_core.files.compression import unpacked


@contextlib.contextmanager
def open_input(path: str) -> Iterator[BinaryIO]:
    """Open ``path`` (``-`` for standard input) for reading bytes, decompressed.

    Raises InputError when it cannot be opened.
    """
    with _open_as_it_is(path) as raw, unpacked(raw) as stream:
        yield stream


@contextlib.contextmanager
def readable_again(path: str) -> Iterator[str]:
    """A name under which the content can be read as often as wanted, by this program and the processes it starts.

    An ordinary file is its own. Standard input, a FIFO or a process substitution is copied into a temporary
    file, as it is; that has no name in any folder, so that nothing is left of it whatever happens.
    """
    if path != "-" and (not os.path.exists(path) or stat.S_ISREG(os.stat(path).st_mode)):
        yield path
        return
    with tempfile.TemporaryFile(prefix="hybridmt-") as copy:
        with _open_as_it_is(path) as raw:
            shutil.copyfileobj(raw, copy, 1 << 20)
        copy.flush()
        yield f"/proc/{os.getpid()}/fd/{copy.fileno()}"


@contextlib.contextmanager
def _open_as_it_is(path: str) -> Iterator[BinaryIO]:
    if path == "-":
        if sys.stdin is None:
            raise InputError(path, "is closed; give a file, or let the shell open it")
        with _standard_input() as stream:
            yield stream
        return
    with contextlib.ExitStack() as stack:
        try:
            raw = stack.enter_context(open(path, "rb"))
        except (OSError, ValueError) as error:  # a name with a zero byte is a ValueError
            raise InputError(path, f"cannot be read ({getattr(error, 'strerror', error)})") from error
        yield raw


@contextlib.contextmanager
def _standard_input() -> Iterator[BinaryIO]:
    """By a buffer of our own: while a thread waits in Python's for a line, the program cannot end."""
    try:
        descriptor = os.dup(sys.stdin.fileno())
    except OSError:  # a stream that is no file
        yield sys.stdin.buffer
        return
    with open(descriptor, "rb") as stream:
        yield stream
