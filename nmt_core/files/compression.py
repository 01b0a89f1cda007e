"""gzip, xz and zstd: by the first bytes of what is read, by the ending of what is written."""

from __future__ import annotations

import contextlib
import functools
import gzip
import io
import lzma
import sys
import zlib
from collections.abc import Callable, Iterator
from typing import Any, BinaryIO, NamedTuple, cast

from nmt_core.errors import NmtError


def _load_isal() -> tuple[Any, Any]:
    """None where the client was installed alone: then the standard library does it."""
    try:
        from isal import igzip, isal_zlib
    except ImportError:
        return None, None
    return igzip, isal_zlib


def _load_zstd() -> Any:
    try:
        if sys.version_info >= (3, 14):
            from compression import zstd
        else:
            from backports import zstd
    except ImportError:
        return None
    return zstd


igzip, isal_zlib = _load_isal()
zstd = _load_zstd()
_LEVEL = 2  # isal's default: about ten times the speed of zlib's level 6, 10 % larger files
_BUFFER = 1 << 20


class Compression(NamedTuple):
    """A way to compress: ``damaged`` are the errors of its reader, beside EOFError for a file that ends too early."""

    suffix: str
    magic: bytes
    read: Callable[[BinaryIO], Any]
    write: Callable[[BinaryIO], Any]
    pack: Callable[[bytes], bytes]
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
        b"\x1f\x8b",
        read=lambda raw: gzip.GzipFile(fileobj=raw) if igzip is None else igzip.IGzipFile(fileobj=raw, mode="rb"),
        write=lambda raw: (
            gzip.GzipFile(filename="", mode="wb", fileobj=raw, mtime=0)
            if igzip is None
            else igzip.IGzipFile(filename="", mode="wb", fileobj=raw, compresslevel=_LEVEL, mtime=0)
        ),
        pack=lambda content: cast(
            bytes,
            gzip.compress(content, mtime=0) if igzip is None else igzip.compress(content, _LEVEL, mtime=0),
        ),
        damaged=(gzip.BadGzipFile, zlib.error if igzip is None else isal_zlib.error),
    ),
    Compression(
        ".xz",
        b"\xfd7zXZ\x00",
        read=lzma.LZMAFile,
        write=functools.partial(lzma.LZMAFile, mode="wb"),
        pack=lzma.compress,
        damaged=(lzma.LZMAError,),
    ),
    Compression(
        ".zst",
        b"\x28\xb5\x2f\xfd",
        read=lambda raw: _zstd().ZstdFile(raw),
        write=lambda raw: _zstd().ZstdFile(raw, mode="wb", options=_checked()),
        pack=lambda content: cast(bytes, _zstd().compress(content, options=_checked())),
        damaged=() if zstd is None else (zstd.ZstdError,),
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
