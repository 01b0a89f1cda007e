r"""Files as lines, which end at ``\n`` and nowhere else, of bounded length."""

from __future__ import annotations

import codecs
import functools
import io
import itertools
import multiprocessing
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import IO, BinaryIO, cast

from nmt_core.base.errors import ConfigError, InputError, input_name
from nmt_core.base.messages import counted, say
from nmt_core.files.compression import DAMAGED, NotDecompressed, compression_of
from nmt_core.files.reading import open_input

LINE_LIMIT = "HYBRIDMT_LINE_LIMIT"  # MiB; in the environment, so that it holds in worker processes too
_MIB = 1 << 20
_LONGEST = 16  # MiB
_BLOCK = 1 << 18  # not more than the least limit; what is made of it stays in the processor's cache
_RETURNS_ALONE = "its lines end in carriage returns alone; convert them to line feeds (tr '\\r' '\\n')"


def read_lines(path: str, *, shown: str | None = None, as_it_is: bool = False) -> Iterator[bytes]:
    r"""Yield the lines of ``path``, in errors called ``shown``, as bytes without their ``\n``.

    A byte order mark at the start is left out, with a remark, unless the file is wanted ``as_it_is``. Raises
    InputError, naming the line, for an unreadable file, truncated or damaged compressed data, a line longer than the
    limit (16 MiB, or what the environment's HYBRIDMT_LINE_LIMIT says), and a file whose lines end in ``\r`` alone.
    """
    blocks = read_blocks(path, shown=shown, as_it_is=as_it_is)
    return itertools.chain.from_iterable(block.removesuffix(b"\n").split(b"\n") for block in blocks)


def read_blocks(path: str, *, shown: str | None = None, as_it_is: bool = False) -> Iterator[bytes]:
    r"""The content, cut somewhere behind a ``\n``; mark and errors as of ``read_lines``."""
    shown, lines = shown or path, 0
    with _damage_named(shown, lambda: lines), open_input(path) as stream:
        blocks = _whole_lines(stream)
        first = next(blocks, b"")
        if b"\n" not in first and b"\r" in first.rstrip(b"\r"):
            raise InputError(shown, _RETURNS_ALONE)
        if first.startswith(codecs.BOM_UTF8) and not as_it_is:
            _report_mark(shown)
            first = first.removeprefix(codecs.BOM_UTF8)
        for block in itertools.chain([first] if first else [], blocks):
            yield block
            lines += block.count(b"\n")


def read_beginning(path: str, size: int) -> bytes:
    """The first bytes of the content, at most ``size``. Raises InputError as ``read_lines``."""
    with _damage_named(path, lambda: 0), open_input(path) as stream:
        return stream.read(size)


def packing_of(path: str) -> str:
    """``.gz``, ``.xz`` or ``.zst`` by the first bytes of a file, whatever it is called; nothing for another.

    Raises InputError when it cannot be opened, or is compressed by another program.
    """
    with _damage_named(path, lambda: 0), open_input(path, as_it_is=True) as raw:
        return compression_of(raw)


@functools.cache
def _report_mark(shown: str) -> None:
    if multiprocessing.parent_process() is None:  # the processes of a job read what the program itself has read
        say(f"{input_name(shown)}: begins with a byte order mark, which is left out")


@contextmanager
def _damage_named(shown: str, lines: Callable[[], int]) -> Iterator[None]:
    """Raise InputError for a file that cannot be read further, behind so many ``lines``."""
    try:
        yield
    except _TooLong as error:
        if error.args[0] and not lines():
            raise InputError(shown, _RETURNS_ALONE) from error
        problem = f"is longer than {line_limit() // _MIB} MiB; is this the right file? {LINE_LIMIT}=N allows N MiB"
        raise InputError(shown, problem, line=lines() + 1) from error
    except NotDecompressed as error:
        remedy = "which is not read; unpack it, or pack it once, with gzip, xz or zstd"
        raise InputError(shown, f"{error}, {remedy}") from error
    except EOFError as error:
        problem = "ends too early, here or a little later (a truncated file, or other bytes behind it?); copy it again"
        raise InputError(shown, f"the compressed data {problem}", line=lines() + 1) from error
    except DAMAGED as error:
        problem = f"the compressed data is damaged, here or a little later ({error}); make or copy the file again"
        raise InputError(shown, problem, line=lines() + 1) from error
    except OSError as error:
        raise InputError(shown, f"cannot be read ({error.strerror or error})", line=lines() + 1) from error


class _TooLong(Exception):
    r"""A line is longer than it may be; the argument is whether there is a ``\r`` in it."""


def _whole_lines(stream: BinaryIO) -> Iterator[bytes]:
    """Blocks that end with a line; the time is linear in the length of lines too."""
    limit, waiting = line_limit(), bytearray()
    while block := cast(io.BufferedReader, stream).read1(_BLOCK):
        first = block.find(b"\n")
        if len(waiting) + (len(block) if first < 0 else first) > limit:
            raise _TooLong(b"\r" in waiting)
        if first < 0:
            waiting += block
            continue
        end = block.rfind(b"\n") + 1
        yield b"".join([waiting, memoryview(block)[:end]])
        waiting = bytearray(block[end:])
    if waiting:
        yield bytes(waiting)


def line_limit() -> int:
    """The length in bytes that a line may have, decompressed. Raises ConfigError."""
    given = os.environ.get(LINE_LIMIT, str(_LONGEST))
    if not (given.isascii() and given.isdigit() and 1 <= int(given[:9]) < 1 << 20):
        raise ConfigError(f"{LINE_LIMIT}={given}: expected a whole number of MiB, at least 1")
    return int(given) * _MIB


def read_text_lines(path: str, *, errors: str = "strict") -> Iterator[str]:
    r"""Yield the lines of a UTF-8 file without ``\n`` or ``\r\n``.

    Raises InputError with the line number for bytes that are not UTF-8, unless ``errors`` says
    otherwise (as in ``bytes.decode``).
    """
    return decode_lines(read_lines(path), path, errors=errors)


def decode_lines(lines: Iterable[bytes], shown: str, *, errors: str = "strict") -> Iterator[str]:
    r"""The text of the lines of a file, in errors called ``shown``, without ``\r``; errors of ``read_text_lines``."""
    for number, line in enumerate(lines, start=1):
        try:
            text = line.decode("utf-8", errors)
        except UnicodeDecodeError as error:
            raise InputError(
                shown, f"not UTF-8 at byte {error.start + 1}; convert the file with iconv", line=number
            ) from error
        yield text[:-1] if text.endswith("\r") else text


def read_parallel_lines(paths: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """Yield the lines of several UTF-8 files side by side.

    Raises InputError, with both numbers if they can be known, when the files do not have as many lines.
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
            longer = next(place for place, line in enumerate(lines) if line is not end)
            raise unequal_lines(ended[0], number, paths[longer], streams[longer])
        number += 1
        yield cast(tuple[str, ...], tuple(lines))


def unequal_lines(short: str, lines: int, longer: str, rest: Iterator[object]) -> InputError:
    """What is said of a file that ends after so many lines where another goes on.

    ``rest`` is what follows the next line of the longer one, which is counted if it is a file: a pipe may never end.
    """
    more = "more"
    if os.path.isfile(longer):
        with suppress(InputError):  # of a line that cannot be read
            more = f"{lines + 1 + sum(1 for _ in rest):,}"
    problem = (
        f"has {counted(lines, 'line')} but {input_name(longer)} has {more}; parallel files must match line by line"
    )
    return InputError(short, problem, line=lines + 1)


def write_lines(stream: IO[bytes], lines: Sequence[str]) -> None:
    r"""Write each line in UTF-8 with a ``\n`` behind it."""
    stream.write("".join(f"{line}\n" for line in lines).encode("utf-8", "surrogateescape"))
