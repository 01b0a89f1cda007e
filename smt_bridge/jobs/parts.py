"""The outputs of single shards, and whether they are what they were when they were written.

OUT.parts/000001.gz     the output of a shard
OUT.parts/000001.json   which job and shard it belongs to, its length and CRC-32, and what was counted meanwhile
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator
from typing import Any, BinaryIO, Generic, NamedTuple, TypeVar

from isal.isal_zlib import crc32

from nmt_core.files import open_replacement
from smt_bridge.jobs.manifest import Shard
from smt_bridge.jobs.workers import Worker

Item = TypeVar("Item")
_BLOCK = 1 << 18


class Piece(NamedTuple):
    """The output of a shard, as it will stand in the file, and what was counted while it was made."""

    content: bytes
    counts: dict[str, float]


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
    """The files of the parts in ``folder``; the outputs have the ending ``suffix``."""

    folder: str
    suffix: str

    def write(self, task: Task[Any], piece: Piece) -> None:
        """First the record, then the output: a shard with both is finished. One sync of the folder is for both."""
        record = {
            "job": task.job,
            "shard": task.shard,
            "bytes": len(piece.content),
            "crc": crc32(piece.content),
            "counts": piece.counts,
        }
        with open_replacement(self._record_path(task.place), settled=False) as stream:
            stream.write(json.dumps(record).encode())
        with open_replacement(self._path(task.place)) as stream:
            stream.write(piece.content)

    def is_done(self, place: int, shard: Shard, job: str) -> bool:
        """Whether the shard has its output, of this job."""
        with contextlib.suppress(OSError, Damaged):
            record = self._record(place)
            same = record["job"] == job and record["shard"] == list(shard)
            return bool(same and record["bytes"] == os.path.getsize(self._path(place)))
        return False

    def copy(self, place: int, stream: BinaryIO) -> dict[str, float]:
        """Write a part behind the others; what was counted. Raises Damaged."""
        record, crc = self._record(place), 0
        for block in self._blocks(place):
            crc = crc32(block, crc)
            stream.write(block)
        if crc != record["crc"]:
            raise Damaged(place)
        counts: dict[str, float] = record["counts"]
        return counts

    def remove(self, place: int) -> None:
        """Have the shard done again."""
        for path in (self._path(place), self._record_path(place)):
            with contextlib.suppress(FileNotFoundError):
                os.unlink(path)

    def _record(self, place: int) -> dict[str, Any]:
        try:
            with open(self._record_path(place), "rb") as stream:
                record = json.load(stream)
        except (FileNotFoundError, ValueError) as error:
            raise Damaged(place) from error
        if not isinstance(record, dict) or not {"job", "shard", "bytes", "crc", "counts"} <= record.keys():
            raise Damaged(place)
        return record

    def _blocks(self, place: int) -> Iterator[memoryview]:
        """Its content, in one place that stays in the cache; each block is gone with the next."""
        buffer = memoryview(bytearray(_BLOCK))
        try:
            with open(self._path(place), "rb", buffering=0) as part:
                while size := part.readinto(buffer):
                    yield buffer[:size]
        except FileNotFoundError as error:
            raise Damaged(place) from error

    def _path(self, place: int) -> str:
        return os.path.join(self.folder, f"{place + 1:06d}{self.suffix}")

    def _record_path(self, place: int) -> str:
        return os.path.join(self.folder, f"{place + 1:06d}.json")


class PartMaker(Generic[Item]):
    """Does shards and writes their outputs."""

    def __init__(self, parts: Parts, worker: Worker[Item, Piece]) -> None:
        self._parts, self._worker = parts, worker

    @property
    def description(self) -> dict[str, Any]:
        """The worker's."""
        return self._worker.description

    def __call__(self, task: Task[Item]) -> int:
        """Do one shard; the number of its lines."""
        self._parts.write(task, self._worker(task.item))
        return task.shard.lines
