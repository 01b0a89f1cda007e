"""A long job in shards: each has its output in a file of its own, and in the end they are put together.

    OUT.parts/manifest.json     what the job is
    OUT.parts/000001.gz ...     outputs of finished shards, whole or not there
    OUT.parts/000001.json ...   what was counted meanwhile

Whatever happens to the program, at any moment, the same command goes on with the shards that have no
output yet. Bytes do not depend on who did which shard, or when: a shard is scored from its own content
alone, by workers that each have one thread.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, TypeVar

from nmt_core.errors import ConfigError, NmtError
from nmt_core.files import open_replacement
from smt_bridge.jobs.manifest import (
    Manifest,
    Shard,
    check_same,
    check_shards,
    done,
    parse_range,
    part_name,
    read_manifest,
    write_manifest,
)
from smt_bridge.jobs.workers import Worker, Workers

Item = TypeVar("Item")
PARTS = ".parts"
MANIFEST = "manifest.json"


class Piece(NamedTuple):
    """The output of a shard, as it will stand in the file, and what was counted while it was made."""

    content: bytes
    counts: dict[str, float]


class Input(NamedTuple, Generic[Item]):
    """Where the work comes from: ``read`` yields the shards' items in order, ``shard_of`` says which lines one is.

    Both are called in the worker processes too, and must be picklable.
    """

    path: str
    read: Callable[[], Iterator[Item]]
    shard_of: Callable[[Item], Shard]


class Task(NamedTuple):
    """One shard to be done: its place among all."""

    place: int
    shard: Shard


class PartMaker(Generic[Item]):
    """Does shards and writes their outputs into ``folder``.

    It reads the input itself: shards come in ascending order, and reading past those of others costs less
    than sending them from process to process.
    """

    def __init__(self, source: Input[Item], folder: str, worker: Worker[Item, Piece], *, packed: bool) -> None:
        self._source, self._folder, self._worker, self._packed = source, folder, worker, packed
        self._items: Iterator[tuple[int, Item]] = iter(())
        self._place = -1

    @property
    def description(self) -> dict[str, Any]:
        """The worker's."""
        return self._worker.description

    def __call__(self, task: Task) -> int:
        """Do one shard; the number of its lines."""
        item = self._item_at(task.place)
        found = None if item is None else self._source.shard_of(item)
        check_shards(task.shard, found, path=self._source.path)
        assert item is not None
        self._write(task.place, self._worker(item))
        return task.shard.lines

    def _item_at(self, place: int) -> Item | None:
        if place <= self._place or self._place < 0:
            self._items = enumerate(self._source.read())
        for reached, item in self._items:
            self._place = reached
            if reached == place:
                return item
        return None

    def _write(self, place: int, piece: Piece) -> None:
        """First the counts, then the output: a shard whose output is there is finished."""
        with open_replacement(os.path.join(self._folder, f"{place + 1:06d}.json")) as stream:
            stream.write(json.dumps(piece.counts).encode())
        with open_replacement(os.path.join(self._folder, part_name(place, packed=self._packed))) as stream:
            stream.write(piece.content)


@dataclass(frozen=True)
class Job(Generic[Item]):
    """``description`` is whatever the output depends on, by name.

    ``progress`` is told the number of lines of all shards, and then of each one as it is finished.
    ``record`` is a file that describes an older output; it goes before the new one comes.
    """

    output: str
    description: dict[str, Any]
    source: Input[Item]
    progress: Callable[[str, int], None]
    record: str

    @property
    def folder(self) -> str:
        """Where the parts are."""
        return self.output + PARTS

    @property
    def packed(self) -> bool:
        """Whether the output is gzip."""
        return self.output.endswith(".gz")

    def part_maker(self, worker: Worker[Item, Piece]) -> PartMaker[Item]:
        """What a process of this job does."""
        return PartMaker(self.source, self.folder, worker, packed=self.packed)


def run_job(
    job: Job[Item], workers: Workers[Task, int], *, shards: str | None = None, restart: bool = False
) -> list[dict[str, float]] | None:
    """Do what is left of the job; the counts of all shards when the output is complete, else None.

    ``shards`` ("A-B") limits the work to some; the last one of those who do parts merges, by starting the
    job without it. Raises ConfigError when the job was begun with another description.
    """
    with _folder(job, restart=restart, alone=shards is None):
        manifest = _plan(job, workers)
        wanted = range(len(manifest.shards)) if shards is None else parse_range(shards, len(manifest.shards))
        _do_parts(job, workers, manifest, wanted)
        everything = range(len(manifest.shards))
        if shards is not None or len(done(job.folder, everything, packed=job.packed)) < len(everything):
            return None
        return _merge(job, everything)


def clean_up(job: Job[Any]) -> None:
    """Remove the parts; the output is complete."""
    shutil.rmtree(job.folder, ignore_errors=True)


@contextlib.contextmanager
def _folder(job: Job[Any], *, restart: bool, alone: bool) -> Iterator[None]:
    """The folder of the parts, which only one program works through as a whole."""
    try:
        if restart:
            shutil.rmtree(job.folder, ignore_errors=True)
        os.makedirs(job.folder, exist_ok=True)
        lock = os.open(os.path.join(job.folder, "lock"), os.O_RDWR | os.O_CREAT, 0o666)
    except OSError as error:
        raise NmtError(f"{job.folder}: cannot be written ({error.strerror})") from error
    try:
        try:
            fcntl.flock(lock, (fcntl.LOCK_EX if alone else fcntl.LOCK_SH) | fcntl.LOCK_NB)
        except OSError as error:
            raise ConfigError(f"{job.output}: another program is making it now; wait for it, or stop it") from error
        yield
    finally:
        os.close(lock)


def _plan(job: Job[Any], workers: Workers[Task, int]) -> Manifest:
    """The manifest that is there, if it is of this job; else a new one."""
    path = os.path.join(job.folder, MANIFEST)
    description = {**job.description, "models": workers.description}
    manifest = read_manifest(path)
    if manifest is not None:
        check_same(manifest, description, path=path)
        return manifest
    manifest = Manifest(description, [job.source.shard_of(item) for item in job.source.read()])
    write_manifest(path, manifest)
    return manifest


def _do_parts(job: Job[Any], workers: Workers[Task, int], manifest: Manifest, wanted: Sequence[int]) -> None:
    finished = set(done(job.folder, wanted, packed=job.packed))
    job.progress("total", sum(manifest.shards[place].lines for place in wanted))
    job.progress("resumed", sum(manifest.shards[place].lines for place in finished))
    left = [Task(place, manifest.shards[place]) for place in wanted if place not in finished]
    for lines in workers.map(left):
        job.progress("done", lines)


def _merge(job: Job[Any], places: Sequence[int]) -> list[dict[str, float]]:
    """Put the parts one behind the other under the final name."""
    counts: list[dict[str, float]] = []
    with open_replacement(job.output) as stream:
        for place in places:
            with open(os.path.join(job.folder, part_name(place, packed=job.packed)), "rb") as part:
                shutil.copyfileobj(part, stream, 1 << 20)
            with open(os.path.join(job.folder, f"{place + 1:06d}.json"), "rb") as numbers:
                counts.append(json.load(numbers))
        with contextlib.suppress(FileNotFoundError):
            os.unlink(job.record)
    return counts
