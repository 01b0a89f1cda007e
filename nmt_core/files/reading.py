"""Opening what is read, and file digests."""

from __future__ import annotations

import contextlib
import hashlib
import os
import sys
from collections.abc import Iterator
from typing import BinaryIO

from nmt_core.base.errors import InputError, unreadable
from nmt_core.files.compression import decompressed


@contextlib.contextmanager
def open_input(path: str, *, as_it_is: bool = False) -> Iterator[BinaryIO]:
    """Open ``path`` (``-`` for standard input) for reading bytes, decompressed unless it is wanted ``as_it_is``.

    Raises InputError when it cannot be opened.
    """
    with _open(path) as raw:
        yield raw if as_it_is else decompressed(raw)


def _open(path: str) -> contextlib.AbstractContextManager[BinaryIO]:
    """Standard input has a buffer of our own: while a thread waits in Python's for a line, the program cannot end."""
    try:
        if path != "-":
            return open(path, "rb")
        if sys.stdin is None:
            raise InputError(path, "is closed; give a file, or let the shell open it")
        return open(os.dup(sys.stdin.fileno()), "rb")
    except (OSError, ValueError) as error:
        if path == "-":  # a stream that is no file
            return contextlib.nullcontext(sys.stdin.buffer)
        raise unreadable(path, error) from error


def file_digest(path: str, *, shown: str | None = None) -> str:
    """SHA-256 of a file, as it lies there. Raises InputError, which calls it ``shown``."""
    try:
        with open(path, "rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()
    except OSError as error:
        raise unreadable(shown or path, error) from error
