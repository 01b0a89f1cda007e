"""One loop for all long work: shards of an input go through workers, their results are written in order.

Where input and outputs are files, what is finished is kept (``outputs.py``) and not done again. A shard's result comes
from the outputs themselves, from a range that another program has done, or from a worker.
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
from typing import Any, Generic, TypeVar

from nmt_core.base.errors import ConfigError
from nmt_core.files import file_digest, is_written_through, pack
from nmt_core.files.reading import check_regular
from nmt_core.jobs.journal import AGAIN, Counts, Shard, check_identity
from nmt_core.jobs.outputs import Outputs, Result, open_outputs
from nmt_core.jobs.ray_workers import Ray, ray_workers
from nmt_core.jobs.workers import OpenWorker, Workers, in_order, process_workers
from nmt_core.processes import orderly_end

Item = TypeVar("Item")
_VERSION = 3  # of journals

Seen = Callable[[Shard, Counts, bool], None]
"""Called for each shard, in order, with its counts, and whether it was finished before."""

OnComplete = Callable[[Counts, dict[str, Any]], None]
"""Called with the sums of all counts, and with what the workers say of themselves, before outputs have their names."""


@dataclass(frozen=True)
class Job(Generic[Item]):
    """``read`` yields the shards of the input and what workers are given of each, in order.

    ``outputs`` are the files that are made; the journal lies beside the first. ``description`` is whatever the outputs
    depend on, by name. ``files`` (path by shown name) are all that is read; they are hashed for the journal. Without
    ``journaled`` nothing is kept of a job that ends before its end.
    """

    input: str
    read: Callable[[], Iterator[tuple[Shard, Item]]]
    outputs: tuple[str, ...]
    description: dict[str, Any]
    files: Mapping[str, str] = field(default_factory=dict)
    journaled: bool = True

    @property
    def is_resumable(self) -> bool:
        """Whether what is finished is kept, for which input and outputs have to be files."""
        return self.journaled and are_files(self.input, self.outputs)


def are_files(source: str, outputs: Sequence[str]) -> bool:
    """Whether ``source`` is a file, and the outputs are, or will be."""
    return os.path.isfile(source) and not any(map(is_written_through, outputs))


@contextlib.contextmanager
def open_workers(open_worker: OpenWorker, jobs: int, ray: Ray | None = None) -> Iterator[Workers]:
    """``jobs`` workers, which ``open_worker(number)`` makes, for the length of the block; raises as their kinds."""
    with orderly_end(), contextlib.ExitStack() as stack:
        if ray is not None:
            yield stack.enter_context(ray_workers(open_worker, jobs, ray))
        elif jobs > 1:
            yield stack.enter_context(process_workers(open_worker, jobs))
        else:
            worker = open_worker(0)
            yield Workers(worker.description, lambda item: functools.partial(worker, item), ahead=1)


def run_job(
    job: Job[Any],
    open_worker: OpenWorker,
    *,
    jobs: int = 1,
    ray: Ray | None = None,
    shards: range | None = None,
    restart: bool = False,
    seen: Seen = lambda shard, counts, resumed: None,
    on_complete: OnComplete = lambda counts, description: None,
) -> Counts | None:
    """Do what is left of the job; the sums of all counts when the outputs are complete, else None.

    ``shards`` (indices) limits the work to some; the same job without it puts all together. A job that is not resumable
    is done as its input comes. Raises ConfigError when the job was begun with another description, NmtError while
    another program does it.
    """
    is_resumable = job.is_resumable
    files = job.files if is_resumable else {}
    digests = _digests(files)  # before any worker reads the files
    opened = functools.partial(_PackingWorker, open_worker, job.outputs)
    with open_workers(opened, jobs, ray) as workers:
        identity = None
        if is_resumable:
            described = {**job.description, "models": workers.description, "sha256": digests}
            identity = json.loads(json.dumps({"journal version": _VERSION, **described}))
        with open_outputs(job.outputs, identity, shards=shards, restart=restart) as outputs:
            counts = Counts()
            results = _results(job, workers, outputs, shards or range(sys.maxsize))
            for (shard, place), result in in_order(results, ahead=workers.ahead):
                if place is not outputs:
                    outputs.append(shard, result)
                counts |= {name: counts.get(name, 0) + number for name, number in result.counts.items()}
                seen(shard, result.counts, place is not None)
            now = _digests(files)
            if now != digests:
                outputs.discard()  # which content they are of is not known
                check_identity({"sha256": digests}, {"sha256": now}, path=job.input)
            if shards is not None:
                outputs.sync()
                return None
            on_complete(counts, workers.description)
            outputs.commit()
            return counts


def _digests(files: Mapping[str, str]) -> dict[str, str]:
    """SHA-256 of files that are read more than once. Raises InputError for pipes."""
    for path in files.values():
        check_regular(path)
    return {shown: file_digest(path, shown=shown) for shown, path in files.items()}


class _PackingWorker:
    """A worker whose results are compressed as the names of the outputs say."""

    def __init__(self, open_worker: OpenWorker, outputs: Sequence[str], number: int) -> None:
        self._worker, self._outputs = open_worker(number), outputs
        self.description: dict[str, Any] = self._worker.description

    def __call__(self, item: Any) -> Result:
        result = self._worker(item)
        return Result(tuple(map(pack, result.contents, self._outputs)), result.counts)


def _results(
    job: Job[Any], workers: Workers, outputs: Outputs, wanted: range
) -> Iterator[tuple[tuple[Shard, Outputs | None], Callable[[], Result]]]:
    """Each wanted shard, the outputs that had it before, if any, and a function that waits for its result.

    Raises ConfigError where the input is cut in another way than when a shard was done.
    """
    done: dict[int, tuple[Outputs, int]] = {}
    for shards, place in (*outputs.ranges.items(), (wanted, outputs)):
        done |= {shards.start + index: (place, index) for index in range(len(place.before))}
    for number, (shard, item) in itertools.islice(enumerate(job.read()), wanted.start, wanted.stop):
        if number not in done:
            yield (shard, None), workers.ask(item)
            continue
        place, index = done[number]
        entry = place.before[index]
        if entry.shard != shard:
            raise ConfigError(f"{job.input}: shard {number + 1} was begun with other lines; {AGAIN}")
        if place is outputs:  # nothing is written again
            yield (shard, place), functools.partial(Result, (), entry.counts)
        else:
            yield (shard, place), functools.partial(place.result, index)
