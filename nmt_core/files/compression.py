"""gzip, xz and zstd: by the first bytes of what is read, by the ending of what is written."""

from __future__ import annotations

import contextlib
import functools
import io
import lzma
import sys
from collections.abc import Callable, Iterator
from typing import Any, BinaryIO, NamedTuple, cast

from isal import igzip, isal_zlib

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

_LEVEL = 2  # isal's default: about ten times the speed of zlib's level 6, 10 % larger files
_BUFFER = 1 << 20
_CHECKED: dict[int, int] = {zstd.CompressionParameter.checksum_flag: 1}  # as the zstd program has it


class Compression(NamedTuple):
    """A way to compress: ``damaged`` are the errors of its reader, beside EOFError for a file that ends too early."""

    name: str
    suffix: str
    magic: bytes
    read: Callable[[BinaryIO], Any]
    write: Callable[[BinaryIO], Any]
    pack: Callable[[bytes], bytes]
    damaged: tuple[type[Exception], ...]


_ALL = (
    Compression(
        "gzip",
        ".gz",
        b"\x1f\x8b",
        read=lambda raw: igzip.IGzipFile(fileobj=raw, mode="rb"),
        write=lambda raw: igzip.IGzipFile(filename="", mode="wb", fileobj=raw, compresslevel=_LEVEL, mtime=0),
        pack=lambda content: cast(bytes, igzip.compress(content, _LEVEL, mtime=0)),
        damaged=(igzip.BadGzipFile, cast(type[Exception], isal_zlib.error)),
    ),
    Compression(
        "xz",
        ".xz",
        b"\xfd7zXZ\x00",
        read=lzma.LZMAFile,
        write=functools.partial(lzma.LZMAFile, mode="wb"),
        pack=lzma.compress,
        damaged=(lzma.LZMAError,),
    ),
    Compression(
        "zstd",
        ".zst",
        b"\x28\xb5\x2f\xfd",
        read=zstd.ZstdFile,
        write=functools.partial(zstd.ZstdFile, mode="wb", options=_CHECKED),
        pack=functools.partial(zstd.compress, options=_CHECKED),
        damaged=(zstd.ZstdError,),
    ),
)
DAMAGED = tuple(error for compression in _ALL for error in compression.damaged)
LONGEST_MAGIC = max(len(compression.magic) for compression in _ALL)


def suffix_of(path: str) -> str:
    """``.gz``, ``.xz`` or ``.zst`` where what is written under this name is compressed, else nothing."""
    found = _of_name(path)
    return found.suffix if found else ""


def pack(content: bytes, suffix: str) -> bytes:
    """``content`` as a file of that ending; such files one behind the other are a file of all contents."""
    found = _of_name(suffix)
    return found.pack(content) if found else content


def name_of(beginning: bytes) -> str:
    """What a file with this beginning is compressed with, or nothing."""
    found = _of_content(beginning)
    return found.name if found else ""


@contextlib.contextmanager
def unpacked(raw: BinaryIO) -> Iterator[BinaryIO]:
    """What ``raw`` (which can peek) holds."""
    found = _of_content(cast(io.BufferedReader, raw).peek(LONGEST_MAGIC)[:LONGEST_MAGIC])
    if found is None:
        yield raw
        return
    with io.BufferedReader(cast(io.RawIOBase, found.read(raw)), _BUFFER) as stream:
        yield cast(BinaryIO, stream)


@contextlib.contextmanager
def packed(raw: BinaryIO, path: str) -> Iterator[BinaryIO]:
    """A stream whose content goes into ``raw`` as the ending of ``path`` says."""
    found = _of_name(path)
    if found is None:
        yield raw
        return
    with found.write(raw) as compressor:
        buffered = io.BufferedWriter(compressor, _BUFFER)
        yield cast(BinaryIO, buffered)
        buffered.flush()


def _of_name(path: str) -> Compression | None:
    return next((found for found in _ALL if path.endswith(found.suffix)), None)


def _of_content(beginning: bytes) -> Compression | None:
    return next((found for found in _ALL if beginning.startswith(found.magic)), None)
