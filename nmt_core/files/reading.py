"""Opening what is read, file digests, and files that are read as a whole.

Those are small and of untrusted origin: settings, metadata, keys. What is large is something else under their name,
which is an error before it is in memory.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import os
import stat
import sys
from collections.abc import Iterator
from typing import Any, BinaryIO

from nmt_core.base.errors import InputError, unreadable
from nmt_core.files.compression import LONGEST_MAGIC, decompressed

MOST_BYTES = 64 << 20
MOST_OF_A_KEY = 1 << 20  # bytes of a certificate, a key, a file of tokens
_KINDS = (
    (stat.S_ISDIR, "a folder"),
    (stat.S_ISFIFO, "a pipe"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
    (stat.S_ISSOCK, "a socket"),
)


@contextlib.contextmanager
def open_input(path: str, *, as_it_is: bool = False) -> Iterator[BinaryIO]:
    """Open ``path`` (``-`` for standard input) for reading bytes, decompressed unless it is wanted ``as_it_is``.

    Raises InputError when it cannot be opened.
    """
    source: contextlib.AbstractContextManager[BinaryIO]
    try:
        if path != "-":
            source = io.BufferedReader(_Input(path))
        elif sys.stdin is None:
            raise InputError(path, "is closed; give a file, or let the shell open it")
        else:  # with a buffer of our own: while a thread waits in Python's for a line, the program cannot end
            source = io.BufferedReader(_Input(os.dup(sys.stdin.fileno())))
    except (OSError, ValueError) as error:
        if path != "-":
            raise unreadable(path, error) from error
        source = contextlib.nullcontext(sys.stdin.buffer)  # it is no file
    with source as raw:
        yield raw if as_it_is else decompressed(raw)


class _Input(io.FileIO):
    """A file whose first read has the bytes that show how it is compressed, also where a pipe gives them one by one."""

    _is_begun = False

    def readinto(self, buffer: Any) -> int | None:
        """As in ``FileIO``. A first read of few bytes goes on, but not beyond the end of a line: no more may come."""
        count = super().readinto(buffer)
        if not self._is_begun:
            self._is_begun = True
            while count and count < LONGEST_MAGIC and b"\n" not in bytes(buffer[:count]):
                more = super().readinto(buffer[count:])
                if not more:
                    break
                count += more
        return count


def file_digest(path: str, *, shown: str | None = None) -> str:
    """SHA-256 of a file, as it lies there. Raises InputError, which calls it ``shown``."""
    try:
        with open(path, "rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()
    except OSError as error:
        raise unreadable(shown or path, error) from error


def read_small(path: str, *, most: int = MOST_BYTES, regular: bool = False) -> bytes:
    """The content of a file of at most ``most`` bytes, and ``regular`` if that is asked. Raises InputError."""
    if regular:
        check_regular(path)
    try:
        with open(path, "rb") as stream:
            content = stream.read(most + 1)
    except (OSError, ValueError) as error:
        raise unreadable(path, error) from error
    if len(content) > most:
        raise InputError(path, f"has more than {most:,} bytes, which no file of this kind has; is it the right one?")
    return content


def read_json(path: str, *, most: int = MOST_BYTES, remedy: str = "") -> Any:
    """The value in a JSON file. Raises InputError with the line of a mistake, and the ``remedy``."""
    remedy = f"; {remedy}" if remedy else ""
    content = read_small(path, most=most)
    try:
        return json.loads(content)
    except json.JSONDecodeError as error:
        raise InputError(path, f"is not JSON ({error.msg}){remedy}", line=error.lineno) from error
    except (ValueError, RecursionError) as error:  # not UTF-8, a number of thousands of digits, endless nesting
        raise InputError(path, f"is not JSON ({str(error).partition(';')[0][:80]}){remedy}") from error


def read_pem(path: str, kind: str, *, regular: bool = False) -> bytes:
    """The content of a PEM file. Raises InputError when it holds nothing of that kind."""
    content = read_small(path, most=MOST_OF_A_KEY, regular=regular)
    if kind.encode() not in content:
        raise InputError(path, f"expected a PEM file with a {kind}")
    return content


def json_bytes(content: Any, *, indent: int) -> bytes:
    """JSON with a line end, which ``read_json`` reads as it was; bytes of file names that are not UTF-8 are escaped."""
    return json.dumps(content, indent=indent, ensure_ascii=False).encode("utf-8", "backslashreplace") + b"\n"


def check_regular(path: str) -> None:
    """Raise InputError unless ``path`` is a file, or a link to one; a pipe or a device might never end."""
    try:
        mode = os.stat(path).st_mode
    except (OSError, ValueError) as error:
        raise unreadable(path, error) from error
    if not stat.S_ISREG(mode):
        kind = next((name for test, name in _KINDS if test(mode)), "no file")
        raise InputError(path, f"is {kind}; expected an ordinary file")


def reason(error: OSError | ValueError) -> str:
    """Why the operating system could not do it."""
    return str(getattr(error, "strerror", None) or error)
