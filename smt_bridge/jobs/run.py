"""A long job in shards: each has its output in a file of its own, and in the end they are put together.

    OUT.parts/manifest.json     what the job is
    OUT.parts/000001.gz ...     outputs of finished shards
    OUT.parts/000001.json ...   their CRC-32, and what was counted meanwhile

The input is read twice, by the program itself: to cut it into shards, and to send these to the workers, however many
there are. Whatever happens to the program, at any moment, the same command goes on with the shards that have no
output yet. Bytes do not depend on who did which shard, or when: a shard is scored from its own content
alone, by workers that each have one thread. Nothing is put together that is not what was written, and nothing
goes on with other inputs, options, models or arithmetic than the job was begun with.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from nmt_core.errors import NmtError
from nmt_core.files import open_replacement, remove_leftovers, suffix_of
from smt_bridge.jobs.folder import MANIFEST, held_folder, remove_folder
from smt_bridge.jobs.manifest import (
    Input,
    Manifest,
    check_files,
    check_same,
    check_shards,
    parse_range,
    read_manifest,
    write_manifest,
)
from smt_bridge.jobs.parts import Damaged, PartMaker, Parts, Piece, Task
from smt_bridge.jobs.workers import Worker, Workers
from smt_bridge.signature import file_digest

Item = TypeVar("Item")
Counts = list[dict[str, float]]
PARTS = ".parts"


@dataclass(frozen=True)
class Job(Generic[Item]):
    """``description`` is whatever the output depends on, by name; ``files`` (path by shown name) are hashed for it.

    ``progress`` is called with the number of lines of all shards, and then of each one as it is finished.
    ``record`` is a file that describes an older output; it goes before the new one comes.
    """

    output: str
    description: dict[str, Any]
    source: Input[Item]
    progress: Callable[[str, int], None]
    record: str
    files: Mapping[str, str] = field(default_factory=dict)

    @property
    def parts(self) -> Parts:
        """Where the parts are: beside the file that is made in the end, whatever name leads there."""
        return Parts(os.path.realpath(self.output) + PARTS, suffix_of(self.output))

    def part_maker(self, worker: Worker[Item, Piece]) -> PartMaker[Item]:
        """What a process of this job does."""
        return PartMaker(self.parts, worker)


def run_job(
    job: Job[Item],
    workers: Workers[Task[Any], int],
    *,
    shards: str | None = None,
    restart: bool = False,
    finish: Callable[[Counts], None] = lambda _: None,
) -> Counts | None:
    """Do what is left of the job; the counts of all shards when the output is complete, else None.

    ``shards`` ("A-B") limits the work to some; the last one of those who do parts merges, by starting the
    job without it. ``finish`` writes down what was done, before the parts go. Raises ConfigError when the job was
    begun with another description, and while another program is at it.
    """
    with held_folder(job.parts.folder, restart=restart, alone=shards is None):
        manifest = _plan(job, workers)
        wanted = range(len(manifest.shards)) if shards is None else parse_range(shards, len(manifest.shards))
        _do_parts(job, workers, manifest, wanted)
        if shards is not None:
            return None
        remove_leftovers(job.output)
        counts = _merge_sound(job, workers, manifest)
        finish(counts)
        remove_folder(job.parts.folder)
        return counts


def _plan(job: Job[Any], workers: Workers[Task[Any], int]) -> Manifest:
    """The manifest that is there, if it is of this job; else a new one."""
    path = os.path.join(job.parts.folder, MANIFEST)
    hashes = {shown: file_digest(file, shown=shown) for shown, file in job.files.items()}
    description = {**job.description, "models": workers.description}
    manifest = read_manifest(path)
    if manifest is not None:
        check_files(manifest, hashes)
        check_same(manifest, description, path=path)
        return manifest
    shards = [job.source.shard_of(item) for item in job.source.read()]
    manifest = Manifest({**description, "sha256": hashes}, shards)
    write_manifest(path, manifest)
    return manifest


def _do_parts(job: Job[Any], workers: Workers[Task[Any], int], manifest: Manifest, wanted: Sequence[int]) -> None:
    fingerprint = manifest.fingerprint
    finished = {place for place in wanted if job.parts.is_done(place, fingerprint)}
    job.progress("total", sum(manifest.shards[place].lines for place in wanted))
    job.progress("resumed", sum(manifest.shards[place].lines for place in finished))
    left = [place for place in wanted if place not in finished]
    for lines in workers.map(_tasks(job, manifest, left)):
        job.progress("done", lines)


def _tasks(job: Job[Item], manifest: Manifest, places: Sequence[int]) -> Iterator[Task[Item]]:
    """The shards at these places (ascending), which are as they were when the job was begun."""
    fingerprint, items = manifest.fingerprint, enumerate(job.source.read())
    for place in places:
        item = next((item for reached, item in items if reached == place), None)
        found = None if item is None else job.source.shard_of(item)
        check_shards(manifest.shards[place], found, path=job.source.path)
        assert item is not None
        yield Task(place, manifest.shards[place], fingerprint, item)


def _merge_sound(job: Job[Any], workers: Workers[Task[Any], int], manifest: Manifest) -> Counts:
    """Merge; parts that are not what was written are done again, once."""
    mended: set[int] = set()
    while True:
        try:
            return _merge(job, range(len(manifest.shards)))
        except Damaged as damaged:
            if damaged.place in mended:
                problem = "is not what was written there, for the second time; is the disk damaged?"
                raise NmtError(f"{job.parts.folder}: part {damaged.place + 1} {problem}") from damaged
            mended.add(damaged.place)
            job.parts.remove(damaged.place)
            _do_parts(job, workers, manifest, [damaged.place])


def _merge(job: Job[Any], places: Sequence[int]) -> Counts:
    """Put the parts one behind the other under the final name."""
    with open_replacement(job.output) as stream:
        counts = [job.parts.copy(place, stream) for place in places]
        with contextlib.suppress(FileNotFoundError):
            os.unlink(job.record)
    return counts
