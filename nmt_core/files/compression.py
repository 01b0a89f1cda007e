"""gzip, xz and zstd: by the first bytes of what is read, by the ending of what is written."""

from __future__ import annotations

import contextlib
import functools
import gzip
import io
import lzma
import re
import sys
import zlib
from collections.abc import Callable, Iterator
from typing import Any, BinaryIO, NamedTuple, cast

from nmt_core.base.errors import NmtError
from nmt_core.files.xz import XzReader

try:
    from isal import igzip, isal_zlib
except ImportError:  # the client was installed alone: then the standard library does it
    igzip = isal_zlib = None  # type: ignore[assignment]
try:
    if sys.version_info >= (3, 14):
        from compression import zstd
    else:
        from backports import zstd
except ImportError:
    zstd = None  # type: ignore[assignment]

_LEVEL = 2  # isal's default: about ten times the speed of zlib's level 6, 10 % larger files
_BUFFER = 1 << 20


class Compression(NamedTuple):
    """A way to compress: ``damaged`` are the errors of its reader, beside EOFError for a file that ends too early.

    ``magic`` matches the first bytes.
    """

    suffix: str
    magic: re.Pattern[bytes]
    read: Callable[[BinaryIO], Any]
    write: Callable[[BinaryIO], Any]
    compress: Callable[[bytes], bytes]
    damaged: tuple[type[Exception], ...]


def _zstd() -> Any:
    """The module. Raises NmtError where it is not installed."""
    if zstd is None:
        raise NmtError("files compressed with zstd need backports.zstd: pip install hybridmt")
    return zstd


def _checked() -> dict[int, int]:
    """With a checksum, as the zstd program has it."""
    return {_zstd().CompressionParameter.checksum_flag: 1}


_ALL = (
    Compression(
        ".gz",
        re.compile(rb"\x1f\x8b"),
        read=lambda raw: gzip.GzipFile(fileobj=raw) if igzip is None else igzip.IGzipFile(fileobj=raw, mode="rb"),
        write=lambda raw: (
            gzip.GzipFile(filename="", mode="wb", fileobj=raw, mtime=0)
            if igzip is None
            else igzip.IGzipFile(filename="", mode="wb", fileobj=raw, compresslevel=_LEVEL, mtime=0)
        ),
        compress=lambda content: cast(
            bytes,
            gzip.compress(content, mtime=0) if igzip is None else igzip.compress(content, _LEVEL, mtime=0),
        ),
        damaged=(gzip.BadGzipFile, zlib.error if isal_zlib is None else isal_zlib.error),  # type: ignore[arg-type]
    ),
    Compression(
        ".xz",
        re.compile(rb"\xfd7zXZ\x00"),
        read=XzReader,
        write=functools.partial(lzma.LZMAFile, mode="wb"),
        compress=lzma.compress,
        damaged=(lzma.LZMAError,),
    ),
    Compression(
        ".zst",
        re.compile(rb"\x28\xb5\x2f\xfd|[\x50-\x5f]\x2a\x4d\x18"),  # also pzstd's, which says the size of each frame
        read=lambda raw: _zstd().ZstdFile(raw),
        write=lambda raw: _zstd().ZstdFile(raw, mode="wb", options=_checked()),
        compress=lambda content: cast(bytes, _zstd().compress(content, options=_checked())),
        damaged=() if zstd is None else (zstd.ZstdError,),
    ),
)
DAMAGED = tuple(error for compression in _ALL for error in compression.damaged)
_FOREIGN = {
    "bzip2": re.compile(rb"BZh[1-9](1AY&SY|\x17rE8P\x90)"),
    "zip": re.compile(rb"PK\x03\x04"),
    "7-Zip": re.compile(rb"7z\xbc\xaf\x27\x1c"),
    "lz4": re.compile(rb"\x04\x22\x4d\x18"),
    "lzip": re.compile(rb"LZIP\x01"),
    "lzma": re.compile(rb"\x5d\x00\x00.{2}(\xff{8}|.{5}\x00{3})", re.DOTALL),
    "compress": re.compile(rb"\x1f\x9d"),
}
LONGEST_MAGIC = 13


class NotDecompressed(Exception):
    """The content is compressed by a program whose files are not read, or twice; the text says which."""


def pack(content: bytes, path: str) -> bytes:
    """``content`` compressed as ``path`` says by its ending; such files one behind the other are one file."""
    found = _of_name(path)
    return found.compress(content) if found else content


def compression_of(raw: BinaryIO) -> str:
    """The ending that a file of this content ought to have, nothing where it is not compressed; ``raw`` can peek.

    Raises NotDecompressed.
    """
    found = _of_content(raw)
    return found.suffix if found else ""


def decompressed(raw: BinaryIO) -> BinaryIO:
    """What ``raw`` (which can peek) holds. Raises NotDecompressed."""
    found = _of_content(raw)
    if found is None:
        return raw
    stream = cast(BinaryIO, io.BufferedReader(cast(io.RawIOBase, found.read(raw)), _BUFFER))
    if _of_content(stream) is not None:
        raise NotDecompressed("is packed twice")
    return stream


@contextlib.contextmanager
def compressed(raw: BinaryIO, path: str) -> Iterator[BinaryIO]:
    """A stream whose content goes into ``raw`` as the ending of ``path`` says."""
    found = _of_name(path)
    if found is None:
        yield raw
        return
    compressor = found.write(raw)
    buffered = io.BufferedWriter(compressor, _BUFFER)
    yield cast(BinaryIO, buffered)
    buffered.flush()
    compressor.close()  # which writes the end: who reads a pipe sees by its absence that something went wrong


def _of_name(path: str) -> Compression | None:
    return next((found for found in _ALL if path.endswith(found.suffix)), None)


def _of_content(stream: BinaryIO) -> Compression | None:
    """By the first bytes. Raises NotDecompressed for those of other programs."""
    beginning = cast(io.BufferedReader, stream).peek(LONGEST_MAGIC)[:LONGEST_MAGIC]
    for name, magic in _FOREIGN.items():
        if magic.match(beginning):
            raise NotDecompressed(f"is packed with {name}")
    return next((one for one in _ALL if one.magic.match(beginning)), None)
