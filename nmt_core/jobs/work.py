"""A command's long work: who does it, how far it is, and what it says at its end."""

from __future__ import annotations

import argparse
import functools
import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Protocol, Self, TypeVar

from tqdm import tqdm

from nmt_core.base.errors import ConfigError
from nmt_core.base.messages import say
from nmt_core.files import read_blocks
from nmt_core.jobs.outputs import begun
from nmt_core.jobs.ray_cluster import RayCluster
from nmt_core.jobs.remote import RemoteWorkers
from nmt_core.jobs.run import Job, are_files, run_job
from nmt_core.jobs.shards import Counts, Piece
from nmt_core.jobs.workers import Engine, LocalWorkers, Worker, Workers

Item = TypeVar("Item")


Counted = TypeVar("Counted", bound="Addable")


Progress = Callable[[str, int], None]


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


def check_shards(args: argparse.Namespace, source: str, outputs: Sequence[str], *, given_as: str) -> None:
    """Raise ConfigError for ranges of what is no file. ``given_as`` names the input."""
    if (args.shards or args.restart) and not are_files(source, outputs):
        raise ConfigError(f"--shards and --restart need a file as {given_as} and another as --output")


def is_begun(output: str) -> bool:
    """Whether an earlier command has done shards of ``output``, which the next one puts together."""
    return bool(begun(output))


def _shown_by(bar: Any) -> Progress:
    """The progress of a job on a bar: time left is counted from what is done now."""
    resumed = 0

    def show(what: str, lines: int) -> None:
        nonlocal resumed
        if what == "total":
            resumed = 0
            bar.reset(total=lines)
        elif what == "expected":
            bar.total = lines
        else:
            if what == "resumed":
                resumed += lines
                bar.initial = resumed
            bar.update(lines)

    return show


@dataclass(frozen=True)
class Work(Generic[Item]):
    """Who does a command's job: ``jobs`` workers that ``engine`` begins by ``open_worker(number)``.

    ``open_worker`` is called in other processes, too, and must be picklable.
    """

    name: str
    unit: str
    open_worker: Callable[[int], Worker[Item, Piece]]
    jobs: int
    quiet: bool
    engine: Engine

    def run(
        self,
        job: Job[Item],
        args: argparse.Namespace,
        *,
        finish: Finish,
        seen: Callable[[Counts], None] = lambda counts: None,
        total: int | None = None,
    ) -> list[Counts] | None:
        """Do the job as the options say; what was counted, or None where other ranges are left to do.

        ``finish`` is called at the end with that and with what the workers say of themselves, ``seen`` with the counts
        of each piece. ``total`` is the number of lines of what is no file, where it is known.
        """
        with self.engine(self.open_worker, self.jobs) as workers, self._bar() as bar:
            bar.total = total
            pieces = run_job(
                job,
                workers,
                shards=args.shards,
                restart=args.restart,
                report=_shown_by(bar),
                seen=seen,
                finish=lambda counts: finish(counts, workers.description),
            )
        if pieces is None:
            there = f"shards {args.shards} are done; when all are, the same command without --shards puts them together"
            remark(self.name, there)
        return pieces

    def _bar(self) -> Any:
        return progress_bar(self.name, self.unit, quiet=self.quiet)


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
    return sum(block.count(b"\n") for block in read_blocks(path))


def progress_bar(name: str, unit: str, *, quiet: bool) -> Any:
    """A bar on stderr; a log file needs no line every half second."""
    seen = sys.stderr is not None and not quiet  # it may have been closed before the program began
    seconds = 0.5 if seen and sys.stderr.isatty() else 30.0
    return tqdm(desc=name, unit=unit, unit_scale=True, file=sys.stderr, mininterval=seconds, disable=not seen)
