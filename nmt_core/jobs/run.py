"""One loop for all long work: shards of an input go through workers, their pieces are written in order.

Where input and outputs are files, what is finished is kept (``outputs.py``) and not done again. Processes of this
machine and actors of Ray are workers (``workers.py``, ``remote.py``); a range of the shards is a job of its own that
another program puts together.
"""

from __future__ import annotations

import collections
import contextlib
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from nmt_core.base.errors import InputError
from nmt_core.files import file_digest, is_written_through, open_uncompressed
from nmt_core.jobs.journal import AGAIN
from nmt_core.jobs.outputs import JournaledOutputs, Ranges, check_begun, empty, range_paths
from nmt_core.jobs.shards import Counts, Piece, Shard, Source, parse_range
from nmt_core.jobs.workers import Workers

Item = TypeVar("Item")


Report = Callable[[str, int], None]
"""Called with a number of lines: of all shards ("total"; "expected", where it is estimated while the input is read), of
those that were finished before ("resumed"), and of each one as it is finished ("done")."""


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
        object.__setattr__(self, "states", _states(self.files))

    @property
    def is_resumable(self) -> bool:
        """Whether what is finished is kept, for which input and outputs have to be files."""
        return self.journaled and are_files(self.source.path, self.outputs)


def are_files(source: str, outputs: Sequence[str]) -> bool:
    """Whether ``source`` is a file, and the outputs are, or will be."""
    return os.path.isfile(source) and not any(path == "-" or is_written_through(path) for path in outputs)


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
    if not job.is_resumable:
        return _stream(job, workers, report, seen, finish)
    hashes = {shown: file_digest(file, shown=shown) for shown, file in job.files.items()}
    identity = {**job.description, "models": workers.description, "sha256": hashes}
    if not restart:
        check_begun(job.outputs[0], identity)
    with contextlib.ExitStack() as stack:
        if shards is not None:
            wanted = parse_range(shards, sum(1 for _ in job.source.read()))
            outputs = stack.enter_context(JournaledOutputs(range_paths(job.outputs, wanted), restart=restart))
            outputs.resume(identity)
            _Shards(job, outputs, report, wanted=wanted).complete(workers, seen)
            outputs.sync()
            _check_unchanged(job)
            return None
        outputs = stack.enter_context(JournaledOutputs(job.outputs, restart=restart))
        ranges = stack.enter_context(Ranges(job.outputs, restart=restart))
        if restart:
            ranges.discard()
        outputs.resume(identity)
        _Shards(job, outputs, report, ranges=ranges).complete(workers, seen)
        outputs.fill()
        _check_unchanged(job)
        counts = [entry.counts for entry in outputs.entries]
        finish(counts)
        outputs.commit()
        outputs.discard()
        ranges.discard()
    return counts


def _stream(
    job: Job[Item],
    workers: Workers[Item, Piece],
    report: Report,
    seen: Callable[[Counts], None],
    finish: Callable[[list[Counts]], None],
) -> list[Counts]:
    """Work through the input as it comes; the counts of all pieces."""
    counts = []
    lines: collections.deque[int] = collections.deque()

    def items() -> Iterator[Item]:
        for item in job.source.read():
            lines.append(job.source.shard_of(item).lines)
            yield item

    with contextlib.ExitStack() as stack:
        streams = [stack.enter_context(open_uncompressed(path)) for path in job.outputs]
        for piece in workers.map(items()):
            for path, stream, content in zip(job.outputs, streams, piece.contents, strict=True):
                stream.write(content)
                if path == "-":
                    stream.flush()  # the reader of the pipe sees a translation as soon as it is there
            counts.append(piece.counts)
            seen(piece.counts)
            report("done", lines.popleft())
        for path, stream in zip(job.outputs, streams, strict=True):
            if not counts:
                stream.write(empty(path))
            stream.flush()
        finish(counts)
    return counts


class _Shards(Generic[Item]):
    """What of a job is done and what is left; ``wanted`` are the shards of a range, ``ranges`` what others did."""

    def __init__(
        self,
        job: Job[Item],
        outputs: JournaledOutputs,
        report: Report,
        *,
        wanted: range | None = None,
        ranges: Ranges | None = None,
    ) -> None:
        self._job, self._outputs, self._report, self._wanted, self._ranges = job, outputs, report, wanted, ranges
        self._done = len(outputs.entries)
        self._waiting: collections.deque[tuple[int, Shard]] = collections.deque()  # their indices

    def complete(self, workers: Workers[Item, Piece], seen: Callable[[Counts], None]) -> None:
        """Add what is missing to the outputs."""
        for entry in self._outputs.entries:
            seen(entry.counts)
        if self._job.source.share is None:
            self._report("total", sum(shard.lines for _, shard, _ in self._shards()))
        for piece in workers.map(self._missing()):
            self._append_stored(seen)
            _, shard = self._waiting.popleft()
            self._outputs.append(shard, piece)
            seen(piece.counts)
            self._report("done", shard.lines)
        self._append_stored(seen)

    def _missing(self) -> Iterator[Item]:
        """The items to be computed; all that are not done wait for their turn."""
        found = 0
        for found, (index, shard, item) in enumerate(self._shards(), start=1):
            if found <= self._done:
                self._check_same(self._outputs.entries[found - 1].shard, shard)
                self._report("resumed", shard.lines)
                continue
            self._waiting.append((index, shard))
            if not self._is_stored(index):
                yield item
        if found < self._done:
            self._check_same(self._outputs.entries[found].shard, None)

    def _shards(self) -> Iterator[tuple[int, Shard, Item]]:
        """Index, shard and item of what is wanted; where the end is not known, it is estimated on the way."""
        source, lines = self._job.source, 0
        for index, item in enumerate(source.read()):
            if self._wanted is None or index in self._wanted:
                shard = source.shard_of(item)
                lines += shard.lines
                if source.share is not None:
                    self._report("expected", max(lines, round(lines / max(source.share(), 1e-9))))
                yield index, shard, item
        if source.share is not None:
            self._report("expected", lines)

    def _append_stored(self, seen: Callable[[Counts], None]) -> None:
        """Add what ranges have, up to the next shard that is computed."""
        while self._waiting and self._is_stored(self._waiting[0][0]):
            index, shard = self._waiting.popleft()
            assert self._ranges is not None
            self._check_same(self._ranges.shard(index), shard)
            self._outputs.append(shard, piece := self._ranges.piece(index))
            seen(piece.counts)
            self._report("resumed", shard.lines)

    def _is_stored(self, index: int) -> bool:
        return self._ranges is not None and self._ranges.holds(index)

    def _check_same(self, expected: Shard, found: Shard | None) -> None:
        """Raise InputError unless the input still has the bytes it had."""
        if found != expected:
            problem = f"changed since the job was begun; put the old file back, or {AGAIN}"
            raise InputError(self._job.source.path, problem, line=expected.first)


def _states(files: Mapping[str, str]) -> dict[str, tuple[int, int, int] | None]:
    """What tells that a file is another, or was written to, without reading it; None where it is not there."""
    states: dict[str, tuple[int, int, int] | None] = dict.fromkeys(files)
    for shown, path in files.items():
        with contextlib.suppress(OSError):
            found = os.stat(path)
            states[shown] = found.st_ino, found.st_size, found.st_mtime_ns
    return states


def _check_unchanged(job: Job[Any]) -> None:
    """Raise InputError for a file that was written to, or replaced, since the job was described."""
    for shown, state in _states(job.files).items():
        if state != job.states[shown]:
            raise InputError(shown, f"changed while the job was at work; {AGAIN}")
