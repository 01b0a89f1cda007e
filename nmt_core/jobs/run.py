"""A long job in shards: each has its output in a file of its own, and these are put together meanwhile.

    OUT.parts/manifest.json     what the job is
    OUT.parts/000001.gz ...     outputs of finished shards
    OUT.parts/000001.json ...   their CRC-32, and what was counted meanwhile
    .OUT.01234567.hybridmt.tmp  the first of them, one behind the other; made anew by every program, OUT when it has all

The input is read once, by the program itself, which cuts it into shards and sends these to the workers, however many
there are; beforehand, too, where somebody has to know the shards before the work. Whatever happens to the program, at
any moment, the same command goes on with the shards that have no output yet. Bytes do not depend on who did which
shard, or when: a shard is scored from its own content alone, by workers that each have one thread. Nothing is put
together that is not what was written, and nothing goes on with other inputs, options, models or arithmetic than the
job was begun with.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from nmt_core.errors import InputError, NmtError
from nmt_core.files import file_digest, made_folder_of, open_replacement, record_renewed, suffix_of
from nmt_core.jobs.folder import MANIFEST, held_folder, remove_folder
from nmt_core.jobs.joining import Joined
from nmt_core.jobs.manifest import (
    ANEW,
    Input,
    Manifest,
    Shard,
    check_files,
    check_same,
    check_shards,
    parse_range,
    read_manifest,
    write_manifest,
)
from nmt_core.jobs.parts import Damaged, PartMaker, Parts, Piece, Task
from nmt_core.jobs.workers import Worker, Workers

Item = TypeVar("Item")
Counts = list[dict[str, float]]
PARTS = ".parts"


@dataclass(frozen=True)
class Job(Generic[Item]):
    """``description`` is whatever the output depends on, by name; ``files`` (path by shown name) are hashed for it.

    ``progress`` is called with the number of lines of all shards ("total"; "expected", where it is estimated while the
    input is read), of those that were finished before ("resumed"), and then of each one as it is finished ("done").
    ``record`` is a file that describes an older output; it goes before the new one comes. ``others`` are further files
    that are made, which come before the output does.
    """

    output: str
    description: dict[str, Any]
    source: Input[Item]
    progress: Callable[[str, int], None]
    record: str | None = None
    files: Mapping[str, str] = field(default_factory=dict)
    others: tuple[str, ...] = ()

    @property
    def parts(self) -> Parts:
        """Where the parts are: beside the file that is made in the end, whatever name leads there."""
        return Parts(os.path.realpath(self.output) + PARTS, suffix_of(self.output), tuple(map(suffix_of, self.others)))

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
    alone = shards is None
    with contextlib.ExitStack() as stack:
        for path in (job.output, *job.others):
            stack.enter_context(made_folder_of(path))
        stack.enter_context(held_folder(job.parts.folder, restart=restart, alone=alone))
        before = _states(job.files)
        manifest = _begin(job, workers, planned=shards is not None or job.source.share is None)
        if shards is not None:
            assert manifest.shards is not None
            wanted = parse_range(shards, len(manifest.shards))
            _do_parts(job, workers, manifest, manifest.shards, wanted)
            job.parts.settle(wanted)
            return None
        with contextlib.ExitStack() as finished:
            counts = _make(job, workers, manifest, before, lambda: finished.enter_context(record_renewed(job.record)))
            finish(counts)
        remove_folder(job.parts.folder)
        return counts


def _begin(job: Job[Any], workers: Workers[Task[Any], int], *, planned: bool) -> Manifest:
    """The manifest that is there, if it is of this job; else a new one. Where it is ``planned``, it has the shards."""
    path = os.path.join(job.parts.folder, MANIFEST)
    hashes = {shown: file_digest(file, shown=shown) for shown, file in job.files.items()}
    description = {**job.description, "models": workers.description}
    manifest = begun = read_manifest(path)
    if manifest is not None:
        check_files(manifest, hashes)
        check_same(manifest, description, path=path)
    else:
        manifest = Manifest({**description, "sha256": hashes}, None)
    if planned and manifest.shards is None:
        manifest = manifest._replace(shards=[job.source.shard_of(item) for item in job.source.read()])
    if manifest != begun:
        write_manifest(path, manifest)
    return manifest


def _make(
    job: Job[Any],
    workers: Workers[Task[Any], int],
    manifest: Manifest,
    before: Mapping[str, object],
    joined_all: Callable[[], None],
) -> Counts:
    """Do what is not done, and put the parts one behind the other under the final names.

    ``joined_all`` is called when all is written, before the outputs get their names.
    """
    with contextlib.ExitStack() as stack:
        streams = [stack.enter_context(open_replacement(path)) for path in (job.output, *job.others)]
        joined = Joined(job.parts, streams)
        if manifest.shards is None:
            shards = _do_while_reading(job, workers, manifest, joined)
            _check_unchanged(job.files, before)
        else:
            shards = manifest.shards
            _do_parts(job, workers, manifest, shards, range(len(shards)), joined)
        _join_rest(job, workers, manifest, shards, joined)
        joined_all()
    return joined.counts


def _do_while_reading(
    job: Job[Item], workers: Workers[Task[Any], int], manifest: Manifest, joined: Joined
) -> list[Shard]:
    """Cut the input into shards and do those that are not done, reading it once; all shards."""
    shards: list[Shard] = []
    job.progress("resumed", 0)
    for place in workers.map(_tasks_while_reading(job, manifest, shards)):
        job.progress("done", shards[place].lines)
        joined.go_on(place + 1)
    return shards


def _tasks_while_reading(job: Job[Item], manifest: Manifest, shards: list[Shard]) -> Iterator[Task[Item]]:
    """The shards that are not done; ``shards`` gets all of them."""
    assert job.source.share is not None
    fingerprint, lines = manifest.fingerprint, 0
    for place, item in enumerate(job.source.read()):
        shard = job.source.shard_of(item)
        shards.append(shard)
        lines += shard.lines
        job.progress("expected", max(lines, round(lines / max(job.source.share(), 1e-9))))
        if job.parts.is_done(place, shard, fingerprint):
            job.progress("resumed", shard.lines)
        else:
            yield Task(place, shard, fingerprint, item)
    job.progress("expected", lines)


def _states(files: Mapping[str, str]) -> dict[str, tuple[int, int, int] | None]:
    """What tells that a file is another, or was written to, without reading it; None where it is not there."""
    states: dict[str, tuple[int, int, int] | None] = dict.fromkeys(files)
    for shown, path in files.items():
        with contextlib.suppress(OSError):
            found = os.stat(path)
            states[shown] = found.st_ino, found.st_size, found.st_mtime_ns
    return states


def _check_unchanged(files: Mapping[str, str], before: Mapping[str, object]) -> None:
    """Raise InputError for a file that was written to, or replaced, since it was looked at before."""
    for shown, state in _states(files).items():
        if state != before[shown]:
            raise InputError(shown, f"changed while the job was at work; {ANEW}")


def _do_parts(
    job: Job[Any],
    workers: Workers[Task[Any], int],
    manifest: Manifest,
    shards: Sequence[Shard],
    wanted: Sequence[int],
    joined: Joined | None = None,
) -> None:
    """Do those of the ``wanted`` shards that are not done; from the first on they are ``joined`` meanwhile."""
    fingerprint = manifest.fingerprint
    finished = {place for place in wanted if job.parts.is_done(place, shards[place], fingerprint)}
    job.progress("total", sum(shards[place].lines for place in wanted))
    job.progress("resumed", sum(shards[place].lines for place in finished))
    left = [place for place in wanted if place not in finished]
    for place in workers.map(_tasks(job, fingerprint, shards, left)):
        job.progress("done", shards[place].lines)
        if joined is not None:
            joined.go_on(place + 1)


def _tasks(job: Job[Item], fingerprint: str, shards: Sequence[Shard], places: Sequence[int]) -> Iterator[Task[Item]]:
    """The shards at these places (ascending), which are as they were when the job was begun."""
    items = enumerate(job.source.read())
    for place in places:
        item = next((item for reached, item in items if reached == place), None)
        found = None if item is None else job.source.shard_of(item)
        check_shards(shards[place], found, path=job.source.path)
        assert item is not None
        yield Task(place, shards[place], fingerprint, item)


def _join_rest(
    job: Job[Any], workers: Workers[Task[Any], int], manifest: Manifest, shards: Sequence[Shard], joined: Joined
) -> None:
    """Join what is left; parts that are not what was written are done again, once."""
    mended: set[int] = set()
    while len(joined.counts) < len(shards):
        try:
            joined.append()
        except Damaged as damaged:
            if damaged.place in mended:
                problem = "is not what was written there, for the second time; is the disk damaged?"
                raise NmtError(f"{job.parts.folder}: part {damaged.place + 1} {problem}") from damaged
            mended.add(damaged.place)
            job.parts.remove(damaged.place)
            _do_parts(job, workers, manifest, shards, [damaged.place])
