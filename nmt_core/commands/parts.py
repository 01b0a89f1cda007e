"""What the commands share that work through files in parts (``nmt_core/jobs``)."""

from __future__ import annotations

import argparse
import functools
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, Protocol, Self, TypeVar

from nmt_core.commands.progress import progress_bar
from nmt_core.errors import ConfigError
from nmt_core.files import is_written_through
from nmt_core.messages import say

if TYPE_CHECKING:
    from nmt_core.jobs.parts import PartMaker, Piece
    from nmt_core.jobs.run import Job
    from nmt_core.jobs.workers import Engine, Worker, Workers

Item = TypeVar("Item")
Counted = TypeVar("Counted", bound="Addable")
Progress = Callable[[str, int], None]
Finish = Callable[[list[dict[str, float]], dict[str, Any]], None]


def add_part_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("--shards", metavar="A-B", help="do only these parts of the work, counted from 1; needs files")
    parser.add_argument("--restart", action="store_true", help="throw away what an earlier command has done")
    add_engine_arguments(parser)


def add_engine_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare those that say where the work is done."""
    group = parser.add_argument_group("where to work")
    group.add_argument(
        "--engine", choices=("local", "ray"), default="local", help="processes of this machine, or Ray's actors (local)"
    )
    group.add_argument(
        "--ray-address", metavar="ADDRESS", help="of a Ray cluster (RAY_ADDRESS, else one begun for the command)"
    )
    group.add_argument(
        "--gpus-per-job", type=float, default=0.0, metavar="F", help="with Ray: GPUs of a worker, such as 0.125 (0)"
    )


class Addable(Protocol):
    """Counts of a part of the work."""

    def plus(self, other: Self) -> Self:
        """The counts of both parts together."""
        ...


def engine_of(args: argparse.Namespace) -> Engine:
    """Where the work is to be done, by the options. Raises ConfigError for options that contradict one another."""
    gpus, address = args.gpus_per_job, args.ray_address or os.environ.get("RAY_ADDRESS")
    if args.engine == "ray" and not 0.0 <= gpus < float("inf"):
        raise ConfigError(f"--gpus-per-job {gpus}: expected a number from 0 on")
    if args.engine == "local" and (args.ray_address or gpus):
        raise ConfigError("--ray-address and --gpus-per-job go with --engine ray")
    from nmt_core.jobs.workers import LocalWorkers

    return functools.partial(_on_ray, address, gpus) if args.engine == "ray" else LocalWorkers


def _on_ray(address: str | None, gpus: float, open_worker: Callable[[int], Any], jobs: int) -> Workers[Any, Any]:
    from nmt_core.jobs.ray_cluster import RayCluster
    from nmt_core.jobs.remote import RemoteWorkers

    return RemoteWorkers(RayCluster(open_worker, address=address, jobs=jobs, gpus=gpus), jobs=jobs)


def may_be_done_in_parts(source: str, output: str) -> bool:
    """Whether ``source`` is a file, and ``output`` is one or will be."""
    return os.path.isfile(source) and output != "-" and not is_written_through(output)


def is_done_in_parts(args: argparse.Namespace, source: str, output: str, *, given_as: str) -> bool:
    """The same; raises ConfigError for a part of the work where there are none. ``given_as`` names the input."""
    if may_be_done_in_parts(source, output):
        return True
    if args.shards or args.restart:
        raise ConfigError(f"--shards and --restart need a file as {given_as} and another as --output")
    return False


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


def _unseen(what: str, lines: int) -> None:
    """Progress of a job's processes, which show none."""


@dataclass(frozen=True)
class Work(Generic[Item]):
    """What a command does: ``make_job(progress)`` plans it, ``open_worker(suffix, number)`` opens what does it.

    Both are called in worker processes too, and must be picklable. ``jobs`` is the number of these, which ``engine``
    begins. ``counted`` is which of the workers' counts progress is measured by.
    """

    name: str
    unit: str
    make_job: Callable[[Progress], Job[Item]]
    open_worker: Callable[[str, int], Worker[Item, Piece]]
    jobs: int
    quiet: bool
    engine: Engine
    counted: str = "lines"

    def in_parts(self, *, shards: str | None, restart: bool, finish: Finish) -> list[dict[str, float]] | None:
        """Work through a file; what was counted, or None where others have parts left to do.

        ``finish`` is called with that and with what the workers say of themselves, before the parts go.
        """
        from nmt_core.jobs.run import run_job

        open_maker = functools.partial(_open_part_maker, self.make_job, self.open_worker)
        with self.engine(open_maker, self.jobs) as workers, self._bar() as progress:
            pieces = run_job(
                self.make_job(_shown_by(progress)),
                workers,
                shards=shards,
                restart=restart,
                finish=lambda counts: finish(counts, workers.description),
            )
        if pieces is None:
            remark(
                self.name,
                f"parts {shards} are done; when all are, the same command without --shards puts them together",
            )
        return pieces

    def as_stream(
        self, items: Iterable[Item], output: str, *, record: str | None, finish: Finish, others: Sequence[str] = ()
    ) -> list[dict[str, float]]:
        """Work through items as they come, in order; as ``in_parts``.

        ``record`` is what ``finish`` will write, ``others`` are the other files of a job that makes several.
        """
        from nmt_core.files import open_output, record_renewed

        counts = []
        open_worker = functools.partial(self.open_worker, "")
        with self.engine(open_worker, self.jobs) as workers, ExitStack() as finished:
            with ExitStack() as stack, self._bar() as progress:
                streams = [stack.enter_context(open_output(path)) for path in (output, *others)]
                for piece in workers.map(items):
                    for stream, content in zip(streams, piece.contents, strict=True):
                        stream.write(content)
                    counts.append(piece.counts)
                    progress.update(int(piece.counts[self.counted]))
                finished.enter_context(record_renewed(record))
            finish(counts, workers.description)
        return counts

    def _bar(self) -> Any:
        return progress_bar(self.name, self.unit, quiet=self.quiet)


def summed(kind: Callable[..., Counted], pieces: Iterable[Mapping[str, float]]) -> Counted:
    """The counts of all parts together, as ``kind`` has them."""
    total = kind()
    for piece in pieces:
        total = total.plus(kind(**piece))
    return total


def _open_part_maker(
    make_job: Callable[[Progress], Job[Item]], open_worker: Callable[[str, int], Worker[Item, Piece]], number: int
) -> PartMaker[Item]:
    job = make_job(_unseen)
    return job.part_maker(open_worker(job.parts.suffix, number))


def remark(name: str, text: str) -> None:
    """A line on stderr."""
    say(f"{name}: {text}")
