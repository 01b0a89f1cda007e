"""`rescore-table` by Ray's actors on this machine beside its own processes.

    python benchmarks/ray_jobs.py --model DIR [--lines 1000 842513] [--rounds 2] [--jobs 2] [--dtype float32]
    python benchmarks/ray_jobs.py --model DIR --lines 200000 --lose-machine 60

The first lines of the table, one process or actor a core. Both ways take turns, since the speed of a machine
changes. A few lines show what a cluster costs to start, many what it costs to keep busy. *GiB* is by how much the
memory that the machine has left falls at most, so nothing else may run beside; the bytes of both must agree.

``--lose-machine SECONDS`` runs a cluster of two machines (of Ray: both are on this one) with one CPU each, one of
which is killed that long after the beginning. *at best*: what was left then, done by one machine at the speed that
it has alone.
"""

from __future__ import annotations

import argparse
import itertools
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from common import SHARED, machine, table

from nmt_core.files import read_lines

INTERVAL = 0.2  # seconds between two looks at the memory


def available_memory() -> int:
    """Bytes that programs can still have."""
    fields = dict(line.split(":") for line in Path("/proc/meminfo").read_text().splitlines())
    return 1024 * int(fields["MemAvailable"].removesuffix("kB"))


class MemoryWatch:
    """By how many bytes the memory that is left has fallen at most."""

    def __init__(self) -> None:
        self.before = self.least = available_memory()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch)

    def __enter__(self) -> MemoryWatch:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._ended.wait(INTERVAL):
            self.least = min(self.least, available_memory())

    @property
    def gib(self) -> float:
        """Of the whole machine."""
        return (self.before - self.least) / 2**30


def measure(model: Sequence[str], text: Path, engine: str, jobs: int, *options: str) -> tuple[float, float, bytes]:
    """Seconds and GiB of the command, and what it wrote."""
    output = text.with_suffix(f".{engine.partition(',')[0]}")
    command = [
        sys.executable, "-m", "smt_bridge", "rescore-table", str(text), *model,
        "--engine", engine, "--jobs", str(jobs), "--quiet", "--restart", "--output", str(output), *options,
    ]  # fmt: skip
    begin = time.perf_counter()
    with MemoryWatch() as memory:
        subprocess.run(command, check=True, env={**os.environ, "OMP_NUM_THREADS": "1"})
    return time.perf_counter() - begin, memory.gib, output.read_bytes()


def measure_machines(model: Sequence[str], text: Path, count: int, lose_after: float | None) -> tuple[float, bytes]:
    """Seconds of a job on ``count`` machines with one CPU each, the last of which may be killed, and what it wrote."""
    from ray.cluster_utils import Cluster

    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0})
    try:
        nodes = [cluster.add_node(num_cpus=1) for _ in range(count)]
        options = {} if lose_after is None else {"allow_graceful": False}
        lose = threading.Timer(lose_after or 0.0, cluster.remove_node, [nodes[-1]], options)
        if lose_after is not None:
            lose.start()
        seconds, _, content = measure(model, text, f"ray,address={cluster.address}", count)
        lose.cancel()
        return seconds, content
    finally:
        cluster.shutdown()


def lost_machine(model: Sequence[str], text: Path, lines: int, after: float) -> list[list[Any]]:
    """Rows of two machines, one, and two of which one is lost."""
    two, expected = measure_machines(model, text, 2, None)
    one, _ = measure_machines(model, text, 1, None)
    lost, content = measure_machines(model, text, 2, after)
    if content != expected:
        raise SystemExit("the bytes differ where a machine was lost")
    best = after + (1 - after / two) * one
    machines = [("2", two, ""), ("1", one, ""), (f"2, one lost after {after:g} s", lost, best)]
    return [[f"{lines:,}", name, seconds, best] for name, seconds, best in machines]


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", required=True)
    parser.add_argument("--dtype", default="bfloat16")
    parser.add_argument("--table", default=str(SHARED / "moses/en-fr/phrase-table.gz"))
    parser.add_argument("--lines", type=int, nargs="+", default=[1000, 842_513])
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--lose-machine", type=float, metavar="SECONDS")
    args = parser.parse_args()
    model = ("--scorer", args.model, "--dtype", args.dtype)
    rows: list[list[Any]] = []
    with tempfile.TemporaryDirectory() as folder:
        for lines in args.lines:
            text = Path(folder, f"{lines}.table")
            blocks = read_lines(args.table)
            text.write_bytes(b"".join(line + b"\n" for line in itertools.islice(blocks, lines)))
            if args.lose_machine is not None:
                rows += lost_machine(model, text, lines, args.lose_machine)
                continue
            written = set()
            for engine in ("local", "ray") * args.rounds:
                seconds, gib, content = measure(model, text, engine, args.jobs)
                written.add(content)
                rows.append([f"{lines:,}", engine, seconds, lines / seconds, gib])
            if len(written) > 1:
                raise SystemExit(f"the bytes of {lines:,} lines differ")
    print(machine())
    if args.lose_machine is not None:
        table("rescore-table, a machine lost", ("lines", "machines", "seconds", "at best"), rows)
        return
    table(f"rescore-table, {args.jobs} jobs", ("lines", "engine", "seconds", "lines/s", "GiB"), rows)


if __name__ == "__main__":
    main()
