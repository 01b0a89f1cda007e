"""A command's long work: who does it, and how far it is."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable
from typing import Any

from tqdm import tqdm

from nmt_core.base.errors import ConfigError
from nmt_core.base.messages import say
from nmt_core.files import read_lines
from nmt_core.jobs.journal import Counts, Shard
from nmt_core.jobs.run import Job, OnComplete, are_files, run_job
from nmt_core.jobs.workers import OpenWorker


def run_with_options(
    args: argparse.Namespace,
    job: Job[Any],
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
    if (args.shards or args.restart) and not are_files(job.input, job.outputs):
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


def progress_bar(name: str, unit: str, *, path: str | None = None, quiet: bool) -> Any:
    """A bar on stderr, which knows its end where it counts the lines of a file; a log needs no line every half second.

    Raises InputError.
    """
    is_seen = sys.stderr is not None and not quiet  # it may have been closed before the program began
    on_terminal = is_seen and sys.stderr.isatty()
    countable = on_terminal and path is not None and path != "-" and os.path.isfile(path)
    total = sum(1 for _ in read_lines(path)) if path is not None and countable else None
    seconds = 0.5 if on_terminal else 30.0
    return tqdm(desc=name, unit=unit, total=total, file=sys.stderr, mininterval=seconds, disable=not is_seen)
