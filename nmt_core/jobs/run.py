"""One loop for all long work: shards of an input go through workers, their results are written in order.

Where input and outputs are files, what is finished is kept (``outputs.py``) and not done again. A shard's result comes
from the outputs themselves, from a range that another program has done, or from a worker.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import itertools
import json
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from nmt_core.base.errors import ConfigError
from nmt_core.base.messages import say
from nmt_core.files import file_digest, is_written_through, pack
from nmt_core.files.progress import progress_bar
from nmt_core.files.reading import check_regular
from nmt_core.jobs.journal import AGAIN, Counts, Shard, check_identity
from nmt_core.jobs.outputs import Outputs, Result, open_outputs
from nmt_core.jobs.ray_workers import Ray, ray_workers
from nmt_core.jobs.workers import OpenWorker, Workers, in_order, process_workers

_VERSION = 3  # of journals

Seen = Callable[[Shard, Counts, bool], None]
"""Called for each shard, in order, with its counts, and whether it was finished before."""

OnComplete = Callable[[Counts, dict[str, Any]], None]
"""Called with the sums of all counts, and with what the workers say of themselves, before outputs have their names."""


@dataclass(frozen=True)
class Job:
    """``read`` yields the shards of the input and what workers are given of each, in order.

    ``outputs`` are the files that are made. ``description`` is whatever they depend on, by name. ``files`` (path by
    shown name) are all that is read. A job with ``journaled`` keeps what is finished, for which input and outputs have
    to be files (``are_files``): the journal lies beside the first output and has the digests of ``files``.
    """

    input: str
    read: Callable[[], Iterator[tuple[Shard, Any]]]
    outputs: tuple[str, ...]
    description: dict[str, Any]
    files: Mapping[str, str]
    journaled: bool


def are_files(source: str, outputs: Sequence[str]) -> bool:
    """Whether ``source`` is a file, and the outputs are, or will be."""
    return os.path.isfile(source) and not any(map(is_written_through, outputs))


def open_workers(
    open_worker: OpenWorker, jobs: int, ray: Ray | None = None
) -> contextlib.AbstractContextManager[Workers]:
    """``jobs`` workers, which ``open_worker(number)`` makes, for the length of a block; raises as their kinds."""
    if ray is not None:
        return ray_workers(open_worker, jobs, ray)
    if jobs > 1:
        return process_workers(open_worker, jobs)
    worker = open_worker(0)
    return contextlib.nullcontext(Workers(worker.description, lambda item: functools.partial(worker, item), ahead=1))


def run_with_options(
    args: argparse.Namespace,
    job: Job,
    open_worker: OpenWorker,
    *,
    name: str,
    unit: str,
    jobs: int,
    quiet: bool,
    on_complete: OnComplete,
    seen: Callable[[Counts], None] = lambda counts: None,
) -> Counts | None:
    """Do a command's job as its options say, by ``jobs`` workers that ``open_worker(number)`` makes.

    The sums of what was counted, or None where other shards are left to do. ``open_worker`` is called in other
    processes, too, and must be picklable. ``on_complete`` is as of ``run_job``, ``seen`` is called with the counts of
    each shard. Raises ConfigError for shards of what is no file.
    """
    if (args.shards or args.restart) and not job.journaled:
        raise ConfigError("--shards and --restart need a file as input and another as --output")
    with progress_bar(name, unit, path=None if args.shards else job.input, quiet=quiet) as bar:

        def note(shard: Shard, counts: Counts, resumed: bool) -> None:
            if resumed:  # time left is counted from what is done now
                bar.initial = getattr(bar, "initial", 0) + shard.lines
            bar.update(shard.lines)
            seen(counts)

        how: dict[str, Any] = {"ray": args.engine, "shards": args.shards, "restart": args.restart}
        counts = run_job(job, open_worker, jobs=jobs, seen=note, on_complete=on_complete, **how)
    if counts is None:
        done = f"shards {args.shards.start + 1}-{args.shards.stop} are done"
        say(f"{name}: {done}; when all are, the same command without --shards puts them together")
    return counts


def run_job(
    job: Job,
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

    ``shards`` (indices) limits the work to some; the same job without it puts all together. A job without a journal
    is done as its input comes. Raises ConfigError when the job was begun with another description, NmtError while
    another program does it.
    """
    files = job.files if job.journaled else {}
    digests = _digests(files)  # before any worker reads the files
    opened = functools.partial(_PackingWorker, open_worker, job.outputs)
    with open_workers(opened, jobs, ray) as workers:
        identity = None
        if job.journaled:
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
    job: Job, workers: Workers, outputs: Outputs, wanted: range
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
