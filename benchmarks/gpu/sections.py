"""The sections of the report, one after the other, each a process with a time limit."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import platform
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from multiprocessing.connection import Connection
from pathlib import Path
from typing import NamedTuple

import torch

from benchmarks.gpu import agreement, decoding, machine, peer, scoring, suites, training, updates, waits
from benchmarks.gpu.report import Report, Row, Table

Rows = Callable[[str], Iterator[Row]]
MOST_SECONDS = {"cuda": 530.0, "cpu": 58.0}
_FORK = multiprocessing.get_context("fork")  # everything is imported already, and this process never uses the GPU


class Section(NamedTuple):
    """Rows for a device, and how many seconds they may take on a GPU and in small on a CPU."""

    name: str
    rows: Rows
    on_gpu: float
    on_cpu: float


SECTIONS = (
    Section("machine", machine.rows, 20, 6),
    Section("agreement", agreement.rows, 70, 12),
    Section("waits", waits.rows, 20, 10),
    Section("scoring", scoring.rows, 120, 12),
    Section("decoding", decoding.rows, 75, 8),
    Section("training", training.rows, 45, 8),
    Section("updates", updates.rows, 60, 10),
    Section("tests", suites.rows, 100, 20),
    Section("peer", peer.rows, 40, 5),
)


def run(device: str, directory: Path, *, seconds: float, only: Sequence[str] | None, without_tests: bool) -> int:
    """Fill the report; 0 where every row is as it must be."""
    end, longer = time.monotonic() + seconds, seconds / MOST_SECONDS[device]
    title = f"hybridmt on {device}, Python {platform.python_version()}, PyTorch {torch.__version__}"
    report = Report(directory, title)
    for section in SECTIONS:
        if (only and section.name not in only) or (without_tests and section.name == "tests"):
            continue
        usual = section.on_gpu if device == "cuda" else section.on_cpu
        limit = max(1.0, min(usual * longer, end - time.monotonic()))
        _fill(section, device, report, limit)
        if section.name == "machine" and report.wrong:
            break  # there is no such device
    print(f"{len(report.wrong)} rows are wrong; {directory / 'report.md'}", flush=True)
    return 1 if report.wrong else 0


def _fill(section: Section, device: str, report: Report, limit: float) -> None:
    """Let a process find the rows of one section, and end it with all it began when its time is over."""
    begin = time.monotonic()
    table = Table(section.name, (section.rows.__doc__ or "").strip())
    report.tables.append(table)
    theirs, ours = _FORK.Pipe()[::-1]
    process = _FORK.Process(target=_work, args=(section, device, theirs))
    process.start()
    theirs.close()
    table.state = _take(ours, table, report, begin, limit)
    with contextlib.suppress(ProcessLookupError):  # the usual case: all have ended
        os.killpg(process.pid or 0, signal.SIGKILL)
    process.join()
    if process.exitcode not in (0, -signal.SIGKILL):
        table.rows.append({"what": f"its process ended with {process.exitcode}", "ok": False})
    report.write()
    print(f"{section.name}: {len(table.rows)} rows, {table.state}, {table.seconds:.0f} s", flush=True)


def _take(rows: Connection, table: Table, report: Report, begin: float, limit: float) -> str:
    """Write every row as it comes; how it ended."""
    while rows.poll(max(0.0, begin + limit - time.monotonic())):
        try:
            table.rows.append(rows.recv())
        except EOFError:
            return "complete"
        table.seconds = time.monotonic() - begin
        report.write()
    table.seconds = time.monotonic() - begin
    return f"cut off by its limit of {limit:.0f} s"


def _work(section: Section, device: str, rows: Connection) -> None:
    """In the process of a section: an error is its last row."""
    os.setsid()
    try:
        for row in section.rows(device):
            rows.send(row)
    except Exception as error:  # of any kind: it is what the report is for
        rows.send({"what": f"{type(error).__name__}: {str(error)[:500]}", "ok": False})
    rows.close()
