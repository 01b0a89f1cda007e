"""A command's long work, as its options say."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

from nmt_core.base.errors import ConfigError
from nmt_core.base.messages import say
from nmt_core.files.progress import progress_bar
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
