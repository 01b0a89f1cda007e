"""Opening what is read, leaving out the byte order mark that some editors put before UTF-8 text, and file digests."""

from __future__ import annotations

import codecs
import contextlib
import functools
import hashlib
import os
import sys
from collections.abc import Iterator
from typing import BinaryIO

from nmt_core.base.errors import InputError, unreadable
from nmt_core.base.messages import say
from nmt_core.files.compression import packing, unpacked


class ShareRead:
    """How much of a file has been read, as a share of its size as it lies there; 0 before it was opened."""

    def __init__(self) -> None:
        self._raw: BinaryIO | None = None

    def watch(self, raw: BinaryIO) -> None:
        """Measure this file from now on."""
        self._raw = raw

    def __call__(self) -> float:
        """From 0 to 1."""
        if self._raw is None:
            return 0.0
        if self._raw.closed:
            return 1.0
        return min(1.0, self._raw.tell() / max(1, os.fstat(self._raw.fileno()).st_size))


@contextlib.contextmanager
def open_input(path: str, share: ShareRead | None = None) -> Iterator[BinaryIO]:
    """Open ``path`` (``-`` for standard input) for reading bytes, decompressed; ``share`` only for files.

    Raises InputError when it cannot be opened.
    """
    with open_as_it_is(path) as raw, unpacked(raw) as stream:
        if share is not None:
            share.watch(raw)
        yield stream


def packing_of(path: str) -> str:
    """``.gz``, ``.xz`` or ``.zst`` by the first bytes of a file, whatever it is called; nothing for another.

    Raises InputError when it cannot be opened.
    """
    with open_as_it_is(path) as raw:
        return packing(raw)


@contextlib.contextmanager
def open_as_it_is(path: str) -> Iterator[BinaryIO]:
    """The same, compressed where the file is."""
    if path == "-":
        if sys.stdin is None:
            raise InputError(path, "is closed; give a file, or let the shell open it")
        with _standard_input() as stream:
            yield stream
        return
    with contextlib.ExitStack() as stack:
        try:
            raw = stack.enter_context(open(path, "rb"))
        except (OSError, ValueError) as error:
            raise unreadable(path, error) from error
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


def file_digest(path: str, *, shown: str | None = None) -> str:
    """SHA-256 of a file, as it lies there. Raises InputError, which calls it ``shown``."""
    try:
        with open(path, "rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()
    except OSError as error:
        raise unreadable(shown or path, error) from error


def without_mark(blocks: Iterator[bytes], shown: str) -> Iterator[bytes]:
    """The content without a mark at its start, which is said once for a file, called ``shown``."""
    first = next(blocks, b"")
    if first.startswith(codecs.BOM_UTF8):
        _say_mark_left_out(shown)
        first = first.removeprefix(codecs.BOM_UTF8)
    if first:
        yield first
    yield from blocks


@functools.cache
def _say_mark_left_out(shown: str) -> None:
    import multiprocessing  # here, since hardly any file has a mark

    if multiprocessing.parent_process() is None:  # the processes of a job read what the program itself has read
        say(f"{shown}: begins with a byte order mark, which is left out")
