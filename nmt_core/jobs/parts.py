"""The outputs of single shards, and whether they are what they were when they were written.

OUT.parts/000001.gz     the output of a shard
OUT.parts/000001.1.gz   what belongs into another file, where a job makes several
OUT.parts/000001.json   which job and shard they belong to, lengths and CRC-32, what was counted meanwhile, its CRC-32
"""

from __future__ import annotations

import contextlib
import json
import os
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, BinaryIO, Generic, NamedTuple, TypeVar

from isal.isal_zlib import crc32

from nmt_core.files import settle, write_unsettled
from nmt_core.jobs.manifest import Shard
from nmt_core.jobs.workers import Worker

Item = TypeVar("Item")
_BLOCK = 1 << 18
_OWN = "record"  # in a record, its own CRC-32
_SECONDS = 5.0  # of work that a power cut may cost


class Piece(NamedTuple):
    """The output of a shard, as it will stand in the file, and what was counted while it was made.

    ``others`` are what belongs into the other files of the job.
    """

    content: bytes
    counts: dict[str, float]
    others: tuple[bytes, ...] = ()

    @property
    def contents(self) -> tuple[bytes, ...]:
        """What belongs into each file."""
        return (self.content, *self.others)


class Task(NamedTuple, Generic[Item]):
    """One shard to be done: its place among all, the fingerprint of the manifest it belongs to, and its lines."""

    place: int
    shard: Shard
    job: str
    item: Item


class Damaged(Exception):
    """A part is not what was written."""

    def __init__(self, place: int) -> None:
        self.place = place
        super().__init__(place)


class Parts(NamedTuple):
    """The files of the parts in ``folder``; outputs have the ending ``suffix``, other outputs those of ``others``."""

    folder: str
    suffix: str
    others: tuple[str, ...] = ()

    def write(self, task: Task[Any], piece: Piece) -> None:
        """First the record, the output last: a shard with both is finished. It is not settled."""
        record = {
            "job": task.job,
            "shard": task.shard,
            "bytes": len(piece.content),
            "crc": crc32(piece.content),
            "counts": piece.counts,
            "others": [(len(content), crc32(content)) for content in piece.others],
        }
        write_unsettled(self._record_path(task.place), json.dumps({**record, _OWN: _crc_of(record)}).encode())
        for number, content in reversed(list(enumerate(piece.contents))):
            write_unsettled(self._path(task.place, number), content)

    def settle(self, places: Iterable[int]) -> None:
        """Have parts outlive a power cut. Raises NmtError where the disk has not kept them."""
        settle(path for place in places for path in (self._record_path(place), *self._paths(place)))

    def is_done(self, place: int, shard: Shard, job: str) -> bool:
        """Whether the shard has its output, of this job."""
        with contextlib.suppress(OSError, Damaged):
            record = self._record(place)
            same = record["job"] == job and record["shard"] == list(shard)
            sizes = [os.path.getsize(path) for path in self._paths(place)]
            return bool(same and [size for size, _ in _contents(record)] == sizes)
        return False

    def copy(self, place: int, streams: Sequence[BinaryIO]) -> dict[str, float]:
        """Write a part behind the others, into each file; what was counted. Raises Damaged."""
        record = self._record(place)
        expected = _contents(record)
        if len(expected) != len(streams):
            raise Damaged(place)
        for number, (stream, (_, written)) in enumerate(zip(streams, expected, strict=True)):
            crc = 0
            for block in self._blocks(place, number):
                crc = crc32(block, crc)
                stream.write(block)
            if crc != written:
                raise Damaged(place)
        counts: dict[str, float] = record["counts"]
        return counts

    def remove(self, place: int) -> None:
        """Have the shard done again."""
        for path in (*self._paths(place), self._record_path(place)):
            with contextlib.suppress(FileNotFoundError):
                os.unlink(path)

    def _record(self, place: int) -> dict[str, Any]:
        try:
            with open(self._record_path(place), "rb") as stream:
                record = json.load(stream)
        except (FileNotFoundError, ValueError) as error:
            raise Damaged(place) from error
        if not isinstance(record, dict) or record.pop(_OWN, None) != _crc_of(record):
            raise Damaged(place)
        return record

    def _blocks(self, place: int, number: int) -> Iterator[memoryview]:
        """Its content, in one place that stays in the cache; each block is gone with the next."""
        buffer = memoryview(bytearray(_BLOCK))
        try:
            with open(self._path(place, number), "rb", buffering=0) as part:
                while size := part.readinto(buffer):
                    yield buffer[:size]
        except FileNotFoundError as error:
            raise Damaged(place) from error

    def _paths(self, place: int) -> list[str]:
        return [self._path(place, number) for number in range(1 + len(self.others))]

    def _path(self, place: int, number: int) -> str:
        """That of the output, or of other output ``number``, from 1."""
        name = f"{place + 1:06d}.{number}{self.others[number - 1]}" if number else f"{place + 1:06d}{self.suffix}"
        return os.path.join(self.folder, name)

    def _record_path(self, place: int) -> str:
        return os.path.join(self.folder, f"{place + 1:06d}.json")


def _crc_of(record: Mapping[str, Any]) -> int:
    """The CRC-32 of a record, the same before it is written and after it was read."""
    return int(crc32(json.dumps(record).encode()))


def _contents(record: Mapping[str, Any]) -> list[tuple[int, int]]:
    """Length and CRC-32 of what belongs into each file."""
    return [(record["bytes"], record["crc"]), *map(tuple, record.get("others", []))]


class PartMaker(Generic[Item]):
    """Does shards and writes their outputs, which are settled every few seconds: waiting for the disk is no work."""

    def __init__(self, parts: Parts, worker: Worker[Item, Piece]) -> None:
        self._parts, self._worker = parts, worker
        self._unsettled: list[int] = []
        self._settled = time.monotonic()

    @property
    def description(self) -> dict[str, Any]:
        """The worker's."""
        return self._worker.description

    def __call__(self, task: Task[Item]) -> int:
        """Do one shard; its place."""
        self._parts.write(task, self._worker(task.item))
        self._unsettled.append(task.place)
        if time.monotonic() - self._settled >= _SECONDS:
            self._parts.settle(self._unsettled)
            self._unsettled, self._settled = [], time.monotonic()
        return task.place
