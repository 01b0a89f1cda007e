"""A command's long work: who does it, how far it is, and what it says at its end."""

from __future__ import annotations

import argparse
import functools
import os
import sys
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Protocol, Self, TypeVar

from tqdm import tqdm

from nmt_core.base.errors import ConfigError
from nmt_core.base.messages import say
from nmt_core.files import read_lines
from nmt_core.jobs.journal import Counts
from nmt_core.jobs.outputs import Piece, begun
from nmt_core.jobs.ray_cluster import RayCluster
from nmt_core.jobs.remote import RemoteWorkers
from nmt_core.jobs.run import Job, are_files, run_job
from nmt_core.jobs.workers import Engine, LocalWorkers, Worker, Workers

Item = TypeVar("Item")


Counted = TypeVar("Counted", bound="Addable")


Finish = Callable[[list[dict[str, float]], dict[str, Any]], None]


class Addable(Protocol):
    """Counts of a part of the work."""

    def plus(self, other: Self) -> Self:
        """The counts of both parts together."""
        ...


def engine_of(args: argparse.Namespace) -> Engine:
    """Where the work is to be done, as ``--engine`` says."""
    ray = args.engine
    if ray is None:
        return LocalWorkers
    return functools.partial(_on_ray, ray.address or os.environ.get("RAY_ADDRESS"), ray.gpus)


def _on_ray(address: str | None, gpus: float, open_worker: Callable[[int], Any], jobs: int) -> Workers[Any, Any]:
    return RemoteWorkers(RayCluster(open_worker, address=address, jobs=jobs, gpus=gpus), jobs=jobs)


def is_begun(output: str) -> bool:
    """Whether an earlier command has done shards of ``output``, which the next one puts together."""
    return bool(begun(output))


def run_with_options(
    args: argparse.Namespace,
    job: Job[Item],
    open_worker: Callable[[int], Worker[Item, Piece]],
    *,
    name: str,
    unit: str,
    jobs: int,
    quiet: bool,
    finish: Finish,
    seen: Callable[[Counts], None] = lambda counts: None,
) -> list[Counts] | None:
    """Do a command's job as its options say, by ``jobs`` workers that ``open_worker(number)`` makes.

    What was counted, or None where other ranges are left to do. ``open_worker`` is called in other processes, too, and
    must be picklable. ``finish`` is called at the end with the counts and with what the workers say of themselves,
    ``seen`` with the counts of each piece. Raises ConfigError for ranges of what is no file.
    """
    if (args.shards or args.restart) and not are_files(job.source.path, job.outputs):
        raise ConfigError("--shards and --restart need a file as input and another as --output")
    total = None if args.shards else line_total(job.source.path, quiet=quiet)
    with engine_of(args)(open_worker, jobs) as workers, progress_bar(name, unit, quiet=quiet, total=total) as bar:

        def report(what: str, lines: int) -> None:
            if what == "resumed":  # time left is counted from what is done now
                bar.initial = getattr(bar, "initial", 0) + lines
            bar.update(lines)

        counts = run_job(
            job,
            workers,
            shards=args.shards,
            restart=args.restart,
            report=report,
            seen=seen,
            finish=lambda counts: finish(counts, workers.description),
        )
    if counts is None:
        there = f"shards {args.shards} are done; when all are, the same command without --shards puts them together"
        remark(name, there)
    return counts


def summed(kind: Callable[..., Counted], pieces: Iterable[Mapping[str, float]]) -> Counted:
    """The counts of all parts together, as ``kind`` has them."""
    total = kind()
    for piece in pieces:
        total = total.plus(kind(**piece))
    return total


def remark(name: str, text: str) -> None:
    """A line on stderr."""
    say(f"{name}: {text}")


def line_total(path: str, *, quiet: bool) -> int | None:
    """The number of lines, where the file can be read twice and progress is shown. Raises InputError."""
    if quiet or sys.stderr is None or not sys.stderr.isatty() or path == "-" or not os.path.isfile(path):
        return None
    return sum(1 for _ in read_lines(path))


def progress_bar(name: str, unit: str, *, quiet: bool, total: int | None = None) -> Any:
    """A bar on stderr; a log file needs no line every half second."""
    seen = sys.stderr is not None and not quiet  # it may have been closed before the program began
    seconds = 0.5 if seen and sys.stderr.isatty() else 30.0
    return tqdm(desc=name, unit=unit, total=total, file=sys.stderr, mininterval=seconds, disable=not seen)
