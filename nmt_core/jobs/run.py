"""One loop for all long work: shards of an input go through workers, their pieces are written in order.

Where input and outputs are files, what is finished is kept (``outputs.py``) and not done again. Processes of this
machine and actors of Ray are workers (``workers.py``, ``ray_workers.py``); a range of the shards is a job of its own
that another program puts together.
"""

from __future__ import annotations

import contextlib
import itertools
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, NamedTuple, TypeVar

from isal.isal_zlib import crc32

from nmt_core.base.errors import ConfigError, InputError
from nmt_core.base.messages import counted
from nmt_core.base.words import whole_number
from nmt_core.files import file_digest, is_written_through
from nmt_core.jobs.journal import AGAIN, Counts, Shard
from nmt_core.jobs.outputs import (
    JournaledOutputs,
    Piece,
    StreamedOutputs,
    check_begun,
    journaled_outputs,
    range_paths,
    ranges_begun,
    streamed_outputs,
)
from nmt_core.jobs.workers import Workers

Item = TypeVar("Item")


class Source(NamedTuple, Generic[Item]):
    """Where the work comes from: ``read`` yields the shards' items in order, ``shard_of`` says which lines one is."""

    path: str
    read: Callable[[], Iterator[Item]]
    shard_of: Callable[[Item], Shard]


def shard_of(first: int, content: bytes) -> Shard:
    r"""The shard whose lines, with ``\n`` between them, are ``content``."""
    return Shard(first, content.count(b"\n") + 1, crc32(content))


Report = Callable[[str, int], None]
"""Called with a number of lines: of each shard that was finished before ("resumed"), and is finished now ("done")."""


@dataclass(frozen=True)
class Job(Generic[Item]):
    """``outputs`` are the files that are made; the journal lies beside the first.

    ``description`` is whatever the outputs depend on, by name; ``files`` (path by shown name) are hashed for it.
    Without ``journaled`` nothing is kept of a job that ends before its end. ``states`` are those of the files when the
    job is described, which is before any worker reads them.
    """

    outputs: tuple[str, ...]
    description: dict[str, Any]
    source: Source[Item]
    files: Mapping[str, str] = field(default_factory=dict)
    journaled: bool = True
    states: Mapping[str, object] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "states", {shown: _state(file) for shown, file in self.files.items()})

    @property
    def is_resumable(self) -> bool:
        """Whether what is finished is kept, for which input and outputs have to be files."""
        return self.journaled and are_files(self.source.path, self.outputs)


def are_files(source: str, outputs: Sequence[str]) -> bool:
    """Whether ``source`` is a file, and the outputs are, or will be."""
    return os.path.isfile(source) and not any(map(is_written_through, outputs))


def run_job(
    job: Job[Item],
    workers: Workers[Item, Piece],
    *,
    shards: str | None = None,
    restart: bool = False,
    report: Report = lambda what, lines: None,
    seen: Callable[[Counts], None] = lambda counts: None,
    finish: Callable[[list[Counts]], None] = lambda counts: None,
) -> list[Counts] | None:
    """Do what is left of the job; the counts of all shards when the outputs are complete, else None.

    ``shards`` ("A-B") limits the work to some; the same job without it puts all together. ``seen`` is called with the
    counts of each piece, ``finish`` writes down what was done, before outputs have their names. A job that is not
    resumable is done as its input comes. Raises ConfigError when the job was begun with another description, NmtError
    while another program does it.
    """
    tasks = _tasks(job.source)
    if not job.is_resumable:
        with streamed_outputs(job.outputs) as streamed:
            _append(job, streamed, tasks, workers, {}, report, seen)
            streamed.fill()
            finish(streamed.counts)
        return streamed.counts
    hashes = {shown: file_digest(file, shown=shown) for shown, file in job.files.items()}
    identity = {**job.description, "models": workers.description, "sha256": hashes}
    if not restart:
        check_begun(job.outputs[0], identity)
    if shards is not None:
        wanted = parse_range(shards, sum(1 for _ in job.source.read()))
        with journaled_outputs(range_paths(job.outputs, wanted), restart=restart) as outputs:
            outputs.resume(identity)
            tasks = itertools.islice(tasks, wanted.start, wanted.stop)
            _append(job, outputs, _left(job, outputs, tasks, report), workers, {}, report, seen)
            outputs.sync()
            _check_unchanged(job)
        return None
    with contextlib.ExitStack() as stack:
        outputs = stack.enter_context(journaled_outputs(job.outputs, restart=restart))
        ranges, stored = [], dict[int, tuple[JournaledOutputs, int]]()
        for one in ranges_begun(job.outputs[0]):
            held = stack.enter_context(journaled_outputs(range_paths(job.outputs, one), restart=restart))
            held.drop_damaged()
            stored = {one.start + number: (held, number) for number in range(len(held.entries))} | stored
            ranges.append(held)
        outputs.resume(identity)
        _append(job, outputs, _left(job, outputs, tasks, report), workers, stored, report, seen)
        outputs.fill()
        _check_unchanged(job)
        finish(all_counts := outputs.counts)
        outputs.commit()
        for held in ranges:
            held.discard()
    return all_counts


class _Task(NamedTuple):
    number: int
    shard: Shard
    item: Any


def _tasks(source: Source[Any]) -> Iterator[_Task]:
    """All of the work, in order."""
    for index, item in enumerate(source.read()):
        yield _Task(index, source.shard_of(item), item)


def _left(job: Job[Any], outputs: JournaledOutputs, tasks: Iterable[_Task], report: Report) -> Iterator[_Task]:
    """The tasks that are not finished. Raises InputError unless the input still has the bytes it had."""
    finished, found = [entry.shard for entry in outputs.entries], 0
    for found, task in enumerate(tasks, start=1):
        if found > len(finished):
            yield task
        else:
            _check_same(job.source.path, finished[found - 1], task.shard)
            report("resumed", task.shard.lines)
    if found < len(finished):
        _check_same(job.source.path, finished[found], None)


def _append(
    job: Job[Any],
    outputs: StreamedOutputs | JournaledOutputs,
    tasks: Iterable[_Task],
    workers: Workers[Any, Piece],
    stored: Mapping[int, tuple[JournaledOutputs, int]],
    report: Report,
    seen: Callable[[Counts], None],
) -> None:
    """Do the tasks and write their pieces; those that are ``stored``, by number, are taken from there."""
    for counts in outputs.counts:
        seen(counts)
    for is_stored, group in itertools.groupby(tasks, key=lambda task: task.number in stored):
        own, ahead = itertools.tee(group)  # workers take a few tasks ahead
        kept = (_stored_piece(job, task, *stored[task.number]) for task in ahead)
        pieces = kept if is_stored else workers.map(task.item for task in ahead)
        for task, piece in zip(own, pieces, strict=True):
            outputs.append(task.shard, piece)
            seen(piece.counts)
            report("resumed" if is_stored else "done", task.shard.lines)


def _stored_piece(job: Job[Any], task: _Task, held: JournaledOutputs, number: int) -> Piece:
    """What a range holds. Raises InputError unless the input still has the bytes it had."""
    _check_same(job.source.path, held.entries[number].shard, task.shard)
    return held.piece(number)


def _check_same(path: str, expected: Shard, found: Shard | None) -> None:
    """Raise InputError unless the input still has the bytes it had."""
    if found != expected:
        problem = f"changed since the job was begun; put the old file back, or {AGAIN}"
        raise InputError(path, problem, line=expected.first)


def _check_unchanged(job: Job[Any]) -> None:
    """Raise InputError for a file that was written to, or replaced, since the job was described."""
    for shown, file in job.files.items():
        if _state(file) != job.states[shown]:
            raise InputError(shown, f"changed while the job was at work; {AGAIN}")


def _state(path: str) -> tuple[int, int, int] | None:
    """What tells that a file is another, or was written to, without reading it; None where it is not there."""
    with contextlib.suppress(OSError):
        found = os.stat(path)
        return found.st_ino, found.st_size, found.st_mtime_ns
    return None


def parse_range(text: str, shards: int) -> range:
    """``A-B`` or ``A``, counted from 1, as indices. Raises ConfigError."""
    first, dash, last = text.partition("-")
    last = last if dash else first
    begin, end = whole_number(first) or 0, whole_number(last) or 0
    if not 1 <= begin <= end <= shards:
        there = counted(shards, "shard")
        raise ConfigError(f"--shards {text}: the input has {there}; expected A-B with numbers from 1 to {shards}")
    return range(begin - 1, end)
