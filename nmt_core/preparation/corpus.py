"""Parallel files: in chunks of a few thousand lines, and in a random order, in bounded memory.

To shuffle, every line draws a 64-bit number; lines are put in the order of their numbers. The first pass deals
lines to files by the first bits, the second sorts one file after the other; one that is larger than the
memory is dealt again by the next bits. The order depends on the seed and the number of lines alone.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import struct
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from typing import BinaryIO, NamedTuple, cast

import numpy as np

from nmt_core.base.errors import NmtError
from nmt_core.files import is_written_through, open_output, read_lines, unequal_lines

LINES = 5000


class Chunk(NamedTuple):
    """Lines of all sides; ``first`` is the number of the first, counted from 1."""

    first: int
    sides: tuple[list[bytes], ...]


def read_chunks(paths: Sequence[str], *, lines: int = LINES) -> Iterator[Chunk]:
    """Cut the files side by side. Raises InputError when one has fewer lines than another."""
    streams = [read_lines(path) for path in paths]
    first = 1
    while True:
        sides = tuple(list(itertools.islice(stream, lines)) for stream in streams)
        shortest, longest = min(map(len, sides)), max(map(len, sides))
        if shortest < longest:
            shorter, longer = ([*map(len, sides)].index(length) for length in (shortest, longest))
            rest = itertools.chain(sides[longer][shortest + 1 :], streams[longer])
            raise unequal_lines(paths[shorter], first + shortest - 1, paths[longer], rest)
        if not longest:
            return
        yield Chunk(first, sides)
        first += longest


MEMORY = 1 << 28
_BITS = 6  # of a number, for each time lines are dealt
_NUMBER_BITS = 64
_HEAD = struct.Struct(">QQI")
_OVERHEAD = 120  # bytes that Python takes for a line beside its text


class _Card(NamedTuple):
    """A line of all sides, to be sorted: its number, its place in the input, its text."""

    number: int
    place: int
    text: bytes

    def pack(self) -> bytes:
        """As it stands in a file."""
        return _HEAD.pack(self.number, self.place, len(self.text)) + self.text


def shuffle(inputs: Sequence[str], outputs: Sequence[str], *, seed: int, memory: int = MEMORY) -> int:
    """Write the inputs, which match line by line, in another order; the number of lines.

    About ``memory`` bytes are held. Temporary files of the size of the inputs lie beside the first output; they have
    no names, so that nothing is left of them however the program ends.
    """
    beside = tempfile.gettempdir() if is_written_through(outputs[0]) else os.path.dirname(outputs[0])
    folder = os.path.abspath(beside)
    try:
        with contextlib.ExitStack() as stack:
            streams = [stack.enter_context(open_output(path)) for path in outputs]
            return _write(_sorted_cards(_cards(inputs, seed), folder, memory, bits=0), streams)
    except OSError as error:
        raise NmtError(f"{folder}: cannot be written ({error.strerror})") from error


def _cards(inputs: Sequence[str], seed: int) -> Iterator[_Card]:
    generator = np.random.Philox(seed)
    for chunk in read_chunks(inputs):
        numbers = generator.random_raw(len(chunk.sides[0])).tolist()
        for place, (number, *lines) in enumerate(zip(numbers, *chunk.sides, strict=True), start=chunk.first):
            yield _Card(number, place, b"\n".join(lines))


def _sorted_cards(cards: Iterable[_Card], folder: str, memory: int, *, bits: int) -> Iterator[_Card]:
    """The cards, which agree in their first ``bits``, in order."""
    with _dealt(cards, folder, shift=_NUMBER_BITS - bits - _BITS) as files:
        for stream, size in files:
            with stream:
                if size <= memory or bits + 2 * _BITS > _NUMBER_BITS:
                    yield from sorted(_read(stream))
                else:
                    yield from _sorted_cards(_read(stream), folder, memory, bits=bits + _BITS)


@contextlib.contextmanager
def _dealt(cards: Iterable[_Card], folder: str, *, shift: int) -> Iterator[list[tuple[BinaryIO, int]]]:
    """Files with the cards by the bits above ``shift``, in order, and what each takes in memory."""
    streams: dict[int, BinaryIO] = {}
    sizes: dict[int, int] = {}
    with contextlib.ExitStack() as stack:
        for card in cards:
            bucket = (card.number >> shift) % (1 << _BITS)
            if bucket not in streams:
                streams[bucket] = cast(BinaryIO, stack.enter_context(tempfile.TemporaryFile(dir=folder)))
            sizes[bucket] = sizes.get(bucket, 0) + streams[bucket].write(card.pack()) + _OVERHEAD
        yield [(streams[bucket], sizes[bucket]) for bucket in sorted(sizes)]


def _read(stream: BinaryIO) -> Iterator[_Card]:
    stream.seek(0)
    while head := stream.read(_HEAD.size):
        number, place, length = _HEAD.unpack(head)
        yield _Card(number, place, stream.read(length))


def _write(cards: Iterable[_Card], streams: Sequence[BinaryIO]) -> int:
    count = 0
    for card in cards:
        for stream, line in zip(streams, card.text.split(b"\n"), strict=True):
            stream.write(line + b"\n")
        count += 1
    return count
