r"""Reading and writing files the way Unix filters do.

``-`` is standard input or output, gzip is recognised by its first bytes when reading and by the
name ``*.gz`` when writing, and lines end at ``\n`` and nowhere else (other line separators of
Unicode are ordinary characters of a token). Output appears under its final name only when it is
complete.
"""

from __future__ import annotations

import contextlib
import errno
import io
import itertools
import os
import sys
import tempfile
from collections.abc import Iterator, Sequence
from typing import IO, BinaryIO, cast

from isal import igzip, isal_zlib

from nmt_core.errors import InputError, NmtError

GZIP_MAGIC = b"\x1f\x8b"
_DAMAGED: tuple[type[Exception], ...] = (igzip.BadGzipFile, cast(type[Exception], isal_zlib.error))
_BLOCK = 1 << 20
NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)
_COMPRESSION_LEVEL = 2  # isal's default: about ten times the speed of zlib's level 6, 10 % larger files


@contextlib.contextmanager
def open_input(path: str) -> Iterator[BinaryIO]:
    """Open ``path`` (``-`` for standard input) for reading bytes, decompressing gzip.

    Raises InputError when it cannot be opened.
    """
    with contextlib.ExitStack() as stack:
        if path == "-":
            raw = cast(io.BufferedReader, sys.stdin.buffer)
        else:
            try:
                raw = stack.enter_context(open(path, "rb"))
            except OSError as error:
                raise InputError(path, f"cannot be read ({error.strerror})") from error
        if raw.peek(2)[:2] == GZIP_MAGIC:
            yield cast(
                BinaryIO, stack.enter_context(io.BufferedReader(igzip.IGzipFile(fileobj=raw, mode="rb"), 1 << 20))
            )
        else:
            yield raw


def read_lines(path: str) -> Iterator[bytes]:
    r"""Yield the lines of ``path`` as bytes without their ``\n``.

    Raises InputError, naming the line, for an unreadable file or a truncated or damaged gzip.
    """
    return itertools.chain.from_iterable(read_line_blocks(path))


def read_line_blocks(path: str) -> Iterator[list[bytes]]:
    """The same lines, many at a time, which costs a fraction of the time; blocks depend on nothing but convenience."""
    for block in read_blocks(path):
        yield block.removesuffix(b"\n").split(b"\n")


def read_blocks(path: str) -> Iterator[bytes]:
    r"""The content, cut somewhere behind a ``\n``; raises as ``read_lines``."""
    number, rest = 0, b""
    try:
        with open_input(path) as stream:
            while block := cast(io.BufferedReader, stream).read1(_BLOCK):
                end = block.rfind(b"\n") + 1
                if end:
                    number += block.count(b"\n")
                    yield rest + block[:end]
                    rest = block[end:]
                else:
                    rest += block
    except EOFError as error:
        problem = (
            "the gzip data ends too early, here or a little later (a truncated file?); make or copy the file again"
        )
        raise InputError(path, problem, line=number + 1) from error
    except _DAMAGED as error:
        problem = f"the gzip data is damaged, here or a little later ({error}); make or copy the file again"
        raise InputError(path, problem, line=number + 1) from error
    except OSError as error:
        raise InputError(path, f"cannot be read ({error.strerror or error})", line=number + 1) from error
    if rest:
        yield rest


def read_text_lines(path: str, *, errors: str = "strict") -> Iterator[str]:
    r"""Yield the lines of a UTF-8 file without ``\n`` or ``\r\n``.

    Raises InputError with the line number for bytes that are not UTF-8, unless ``errors`` says
    otherwise (as in ``bytes.decode``).
    """
    for number, line in enumerate(read_lines(path), start=1):
        try:
            text = line.decode("utf-8", errors)
        except UnicodeDecodeError as error:
            raise InputError(
                path, f"not UTF-8 at byte {error.start + 1}; convert the file with iconv", line=number
            ) from error
        yield text[:-1] if text.endswith("\r") else text


def read_parallel_lines(paths: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """Yield the lines of several UTF-8 files side by side.

    Raises InputError when the files do not have the same number of lines.
    """
    streams = [read_text_lines(path) for path in paths]
    end = object()
    number = 0
    while True:
        lines = [next(stream, end) for stream in streams]
        ended = [path for path, line in zip(paths, lines, strict=True) if line is end]
        if len(ended) == len(paths):
            return
        if ended:
            longer = next(path for path in paths if path not in ended)
            raise InputError(
                ended[0], f"has {number} lines but {longer} has more; parallel files must match line by line"
            )
        number += 1
        yield cast(tuple[str, ...], tuple(lines))


@contextlib.contextmanager
def open_output(path: str) -> Iterator[BinaryIO]:
    """Open ``path`` (``-`` for standard output) for writing bytes; ``*.gz`` is compressed.

    A file is written beside its final place and renamed when the block ends well; when it ends with
    an exception nothing is left behind and an older file of that name stays as it was.
    """
    if path == "-":
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    with open_replacement(path) as raw:
        if not path.endswith(".gz"):
            yield raw
            return
        with igzip.IGzipFile(filename="", mode="wb", fileobj=raw, compresslevel=_COMPRESSION_LEVEL, mtime=0) as packed:
            buffered = io.BufferedWriter(cast(io.RawIOBase, packed), 1 << 20)
            yield cast(BinaryIO, buffered)
            buffered.flush()


@contextlib.contextmanager
def open_replacement(path: str) -> Iterator[BinaryIO]:
    """The same for bytes that are written as they are, whatever the name: never half a file."""
    folder, name = os.path.split(os.path.abspath(path))
    try:
        descriptor, temporary = tempfile.mkstemp(prefix=f".{name}.", suffix=".tmp", dir=folder)
    except OSError as error:
        raise NmtError(f"{path}: cannot be written ({error.strerror})") from error
    try:
        with open(descriptor, "wb") as raw:
            yield cast(BinaryIO, raw)
            raw.flush()
            os.fsync(raw.fileno())
        os.chmod(temporary, 0o666 & ~_current_umask())
        os.replace(temporary, path)
    except OSError as error:
        if error.errno not in NO_ROOM:
            raise
        raise NmtError(f"{path}: cannot be written ({error.strerror}); the older file, if any, is untouched") from error
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary)


def gzip_member(content: bytes) -> bytes:
    """``content`` as a gzip file; such files one behind the other are a gzip file of all contents."""
    packed: bytes = igzip.compress(content, _COMPRESSION_LEVEL, mtime=0)
    return packed


def write_lines(stream: IO[bytes], lines: Sequence[str]) -> None:
    r"""Write each line in UTF-8 with a ``\n`` behind it."""
    stream.write("".join(f"{line}\n" for line in lines).encode("utf-8", "surrogateescape"))


def _current_umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
