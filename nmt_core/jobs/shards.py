"""What a long job is cut into: shards of its input, and the piece of each output that a shard gives."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Generic, NamedTuple, TypeVar

from isal.isal_zlib import crc32

from nmt_core.base.errors import ConfigError
from nmt_core.base.messages import counted
from nmt_core.base.numbers import whole_number

Item = TypeVar("Item")
Counts = dict[str, float]


class Shard(NamedTuple):
    """Consecutive lines of the input: the number of the first, from 1, how many, and their CRC-32."""

    first: int
    lines: int
    crc: int


class Piece(NamedTuple):
    """What a shard adds to each output, compressed where the output is, and what was counted meanwhile."""

    contents: tuple[bytes, ...]
    counts: Counts


class Source(NamedTuple, Generic[Item]):
    """Where the work comes from: ``read`` yields the shards' items in order, ``shard_of`` says which lines one is.

    ``share`` says how much of the input has been read; where it is not known, the input is read beforehand, too, so
    that progress can be shown.
    """

    path: str
    read: Callable[[], Iterator[Item]]
    shard_of: Callable[[Item], Shard]
    share: Callable[[], float] | None = None


def shard_of(first: int, content: bytes) -> Shard:
    r"""The shard whose lines, with ``\n`` between them, are ``content``."""
    return Shard(first, content.count(b"\n") + 1, crc32(content))


def parse_range(text: str, shards: int) -> range:
    """``A-B`` or ``A``, counted from 1, as indices. Raises ConfigError."""
    first, dash, last = text.partition("-")
    last = last if dash else first
    begin, end = whole_number(first) or 0, whole_number(last) or 0
    if not 1 <= begin <= end <= shards:
        there = counted(shards, "shard")
        raise ConfigError(f"--shards {text}: the input has {there}; expected A-B with numbers from 1 to {shards}")
    return range(begin - 1, end)
