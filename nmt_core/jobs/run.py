"""One loop for all long work: shards of an input go through workers, their pieces are written in order.

Where input and outputs are files, what is finished is kept (``outputs.py``) and not done again. A shard's piece comes
from this job's own outputs, from those of a range that another program has done, or from a worker.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import json
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, NamedTuple, TypeVar

from isal.isal_zlib import crc32

from nmt_core.base.errors import FULL_GPU, ConfigError, InputError, NmtError, is_full_gpu
from nmt_core.base.messages import counted
from nmt_core.base.words import whole_number
from nmt_core.files import file_digest, is_written_through, pack
from nmt_core.files.small import check_regular
from nmt_core.jobs.journal import AGAIN, Counts, Shard
from nmt_core.jobs.outputs import Outputs, Piece, begun, check_begun, open_outputs, range_paths
from nmt_core.jobs.ray_workers import Ray, ray_workers
from nmt_core.jobs.workers import OpenWorker, Workers, in_order, process_workers
from nmt_core.processes import orderly_end

Item = TypeVar("Item")


class Source(NamedTuple, Generic[Item]):
    """Where the work comes from: ``read`` yields the shards' items in order, ``shard_of`` says which lines one is."""

    path: str
    read: Callable[[], Iterator[Item]]
    shard_of: Callable[[Item], Shard]


def shard_of(first: int, content: bytes) -> Shard:
    r"""The shard whose lines, with ``\n`` between them, are ``content``."""
    return Shard(first, content.count(b"\n") + 1, crc32(content))


Seen = Callable[[Shard, Counts, bool], None]
"""Called for each shard, in order, with its counts, and whether it was finished before."""

Finish = Callable[[list[Counts], dict[str, Any]], None]
"""Called with the counts of all shards, and with what the workers say of themselves."""


@dataclass(frozen=True)
class Job(Generic[Item]):
    """``outputs`` are the files that are made; the journal lies beside the first.

    ``description`` is whatever the outputs depend on, by name; ``files`` (path by shown name) are hashed for it.
    Without ``journaled`` nothing is kept of a job that ends before its end.
    """

    outputs: tuple[str, ...]
    description: dict[str, Any]
    source: Source[Item]
    files: Mapping[str, str] = field(default_factory=dict)
    journaled: bool = True

    @property
    def is_resumable(self) -> bool:
        """Whether what is finished is kept, for which input and outputs have to be files."""
        return self.journaled and are_files(self.source.path, self.outputs)


def are_files(source: str, outputs: Sequence[str]) -> bool:
    """Whether ``source`` is a file, and the outputs are, or will be."""
    return os.path.isfile(source) and not any(map(is_written_through, outputs))


@contextlib.contextmanager
def open_workers(open_worker: OpenWorker, jobs: int, ray: Ray | None = None) -> Iterator[Workers]:
    """``jobs`` workers, which ``open_worker(number)`` makes, for the length of the block; raises as their kinds."""
    with contextlib.ExitStack() as stack:
        if ray is None and jobs == 1:
            worker = open_worker(0)
            stack.enter_context(orderly_end())
            yield Workers(worker.description, lambda item: functools.partial(worker, item), ahead=1)
            return
        stack.enter_context(orderly_end())
        if ray is None:
            yield stack.enter_context(process_workers(open_worker, jobs))
        else:
            yield stack.enter_context(ray_workers(open_worker, jobs, ray))


def run_job(
    job: Job[Any],
    open_worker: OpenWorker,
    *,
    jobs: int = 1,
    ray: Ray | None = None,
    shards: str | None = None,
    restart: bool = False,
    seen: Seen = lambda shard, counts, resumed: None,
    finish: Finish = lambda counts, description: None,
) -> list[Counts] | None:
    """Do what is left of the job; the counts of all shards when the outputs are complete, else None.

    ``shards`` ("A-B") limits the work to some; the same job without it puts all together. ``finish`` writes down what
    was done, before outputs have their names. A job that is not resumable is done as its input comes. Raises
    ConfigError when the job was begun with another description, NmtError while another program does it.
    """
    files = job.files if job.is_resumable else {}
    for path in files.values():
        check_regular(path)  # it is read more than once
    hashes = {shown: file_digest(path, shown=shown) for shown, path in files.items()}  # before any worker reads them
    opened = functools.partial(_PackingWorker, open_worker, job.outputs)
    with open_workers(opened, jobs, ray) as workers, contextlib.ExitStack() as stack:
        identity, wanted, ranges = None, None, dict[range, Outputs]()
        if job.is_resumable:
            identity = json.loads(json.dumps({**job.description, "models": workers.description, "sha256": hashes}))
            if not restart:
                check_begun(job.outputs[0], identity)
            wanted = parse_range(shards, sum(1 for _ in job.source.read())) if shards is not None else None
        opened_outputs = functools.partial(open_outputs, identity=identity, restart=restart)
        outputs = stack.enter_context(opened_outputs(range_paths(job.outputs, wanted)))
        if identity is not None and wanted is None:
            for one in filter(None, begun(job.outputs[0])):
                ranges[one] = stack.enter_context(opened_outputs(range_paths(job.outputs, one)))
        pieces = _pieces(job, workers, outputs, ranges, wanted or range(sys.maxsize), seen)
        for (shard, is_stored), piece in in_order(pieces, ahead=workers.ahead):
            outputs.append(shard, piece)
            seen(shard, piece.counts, is_stored)
        changed = [shown for shown, digest in hashes.items() if digest != file_digest(job.files[shown], shown=shown)]
        if changed:
            raise InputError(changed[0], f"changed while the job was at work; {AGAIN}")
        if wanted is not None:
            outputs.sync()
            return None
        counts = [entry.counts for entry in outputs.entries]
        if not counts:
            outputs.fill()
        finish(counts, workers.description)
        outputs.commit()
        for held in ranges.values():
            held.entries.clear()
        return counts


class _PackingWorker:
    """A worker whose pieces are compressed as the names of the outputs say; a GPU that is full is one line."""

    def __init__(self, open_worker: OpenWorker, outputs: Sequence[str], number: int) -> None:
        self._worker, self._outputs = open_worker(number), outputs
        self.description: dict[str, Any] = self._worker.description

    def __call__(self, item: Any) -> Piece:
        try:
            piece = self._worker(item)
        except RuntimeError as error:
            if not is_full_gpu(error):
                raise
            raise NmtError(FULL_GPU) from error
        return Piece(tuple(map(pack, piece.contents, self._outputs)), piece.counts)


def _pieces(
    job: Job[Any], workers: Workers, outputs: Outputs, ranges: Mapping[range, Outputs], wanted: range, seen: Seen
) -> Iterator[tuple[tuple[Shard, bool], Callable[[], Piece]]]:
    """What is not finished of the wanted shards: each, whether a range has its piece, and what that is waited for by.

    Raises InputError unless the input still has the bytes it had.
    """
    finished = list(outputs.entries)
    stored = {one.start + number: (held, number) for one, held in ranges.items() for number in range(len(held.entries))}
    items = itertools.islice(enumerate(job.source.read()), wanted.start, wanted.stop)
    for entry in finished:
        _, item = next(items, (0, None))
        _check_same(job.source, entry.shard, item)
        seen(entry.shard, entry.counts, True)
    for number, item in items:
        if number in stored:
            held, place = stored[number]
            shard = held.entries[place].shard
            _check_same(job.source, shard, item)
            yield (shard, True), functools.partial(held.piece, place)
        else:
            yield (job.source.shard_of(item), False), workers.ask(item)


def _check_same(source: Source[Any], expected: Shard, item: Any) -> None:
    """Raise InputError unless the input still has the bytes it had."""
    if item is None or source.shard_of(item) != expected:
        problem = f"changed since the job was begun; put the old file back, or {AGAIN}"
        raise InputError(source.path, problem, line=expected.first)


def parse_range(text: str, shards: int) -> range:
    """``A-B`` or ``A``, counted from 1, as indices. Raises ConfigError."""
    first, dash, last = text.partition("-")
    last = last if dash else first
    begin, end = whole_number(first) or 0, whole_number(last) or 0
    if not 1 <= begin <= end <= shards:
        there = counted(shards, "shard")
        raise ConfigError(f"--shards {text}: the input has {there}; expected A-B with numbers from 1 to {shards}")
    return range(begin - 1, end)
