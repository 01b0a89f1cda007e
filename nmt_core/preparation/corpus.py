"""Parallel files in chunks of a few thousand lines."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from nmt_core.files import read_lines, unequal_lines

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
