"""Reading, splitting, joining and writing the real phrase table without scoring.

    python benchmarks/table_io.py [--jobs 2] [--table PATH]

What `rescore-table` does around the models, with a scorer that costs nothing. The limits beside it are
those of the machine in the same run: unpacking and packing alone, and copying the bytes.
"""

from __future__ import annotations

import argparse
import functools
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from typing import Any

from common import SHARED, machine, peak_memory, table
from isal import igzip

from nmt_core.files import pack, read_lines
from nmt_core.jobs.journal import Shard
from nmt_core.jobs.outputs import Result
from nmt_core.jobs.run import Job, open_workers, run_job
from nmt_core.processes import keep_memory_of_tensors
from smt_bridge.tables.table import Window, append_scores, read_windows, split_window


class NoScores:
    """Adds the same number to every line."""

    def __init__(self, number: int) -> None:
        keep_memory_of_tensors()  # as the workers of `rescore-table` do

    @property
    def description(self) -> dict[str, Any]:
        """There is no model."""
        return {}

    def __call__(self, window: Window) -> Result:
        """Split, append and join."""
        columns = split_window(window)
        content = append_scores(columns, [b"0.5"] * len(columns.sources))
        return Result((content,), {"lines": len(columns.sources)})


def job_of(source: str, output: str) -> Job:
    """The table to ``output``, with a journal."""
    read = functools.partial(_shards, source)
    return Job(source, read, (output,), {"input": source}, files={source: source}, journaled=True)


def _shards(source: str) -> Iterator[tuple[Shard, Window]]:
    return ((Shard.of(window.first, window.content), window) for window in read_windows(source))


def through(source: str, output: str, jobs: int) -> float:
    """Seconds from the table to the new table."""
    return second_time(lambda: run_job(job_of(source, output), NoScores, jobs=jobs))


def stream_through(source: str, output: str, jobs: int) -> float:
    """Seconds as a filter, without a journal."""

    def work() -> None:
        with open(output, "wb") as stream, open_workers(NoScores, jobs) as workers:
            for result in workers.answers(read_windows(source)):
                stream.write(result.contents[0])

    return second_time(work)


def second_time(work: Callable[[], object]) -> float:
    """Its seconds, with the start of processes; the first time reads the file from the disk."""
    work()
    begin = time.perf_counter()
    work()
    return time.perf_counter() - begin


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--table", default=str(SHARED / "moses/en-fr/phrase-table.gz"))
    args = parser.parse_args()
    lines = sum(1 for _ in read_lines(args.table))
    with open(args.table, "rb") as stream:
        packed = stream.read()
    content = igzip.decompress(packed)
    rows: list[list[Any]] = []

    def row(name: str, seconds: float) -> None:
        rows.append([name, lines / seconds, len(content) / seconds / 1e6, peak_memory()])

    with tempfile.TemporaryDirectory() as folder:
        for suffix in ("", ".gz"):
            for jobs in dict.fromkeys((1, args.jobs)):
                name = f"{jobs} jobs, to {'gzip' if suffix else 'plain text'}"
                output = os.path.join(folder, "out" + suffix)
                row(f"with a journal, {name}", through(args.table, output, jobs))
                row(f"as a filter, {name}", stream_through(args.table, output, jobs))
    for name, work in (
        ("limit: unpacking alone, one core", lambda: igzip.decompress(packed)),
        ("limit: packing alone, one core", lambda: pack(content, ".gz")),
        ("limit: reading lines, one core", lambda: sum(1 for _ in read_lines(args.table))),
        ("limit: copying the bytes", lambda: bytearray(content)),
    ):
        begin = time.perf_counter()
        work()
        row(name, time.perf_counter() - begin)
    print(machine())
    table(f"{lines:,} lines, {len(content) / 1e6:.0f} MB", ("way", "lines/s", "MB/s", "peak GiB"), rows)


if __name__ == "__main__":
    main()
