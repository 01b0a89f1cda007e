"""Programs that are ended, or find the disk full, at a moment that was drawn.

They are forked from one process that has loaded the packages, so that an attempt costs little.
"""

from __future__ import annotations

import contextlib
import importlib
import multiprocessing
import os
import resource
import signal
import sys
import time
from collections.abc import Mapping, Sequence
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, NamedTuple

from nmt_core.commands.start import start

_PATIENCE_S = 300.0
_PRELOADED = [
    "torch._dynamo",  # which optimisers import
    "tests.faults.programs",
    *(f"nmt_core.commands.{name}" for name in ("main", "decode", "prepare", "train")),
    "nmt_core.inference.commands.decode",
    "nmt_core.inference.translator",
    "nmt_core.model_directory.loaded_model",
    "nmt_core.training.start",
    "nmt_core.training.trainer",
    *(f"smt_bridge.commands.{name}" for name in ("main", "add_features", "rescore_table", "tune_loop")),
]


class Ended(NamedTuple):
    """How a program ended: its exit code, less than 0 for a signal, what it said, and its seconds."""

    code: int
    errors: str
    seconds: float


def begin(
    folder: Path,
    command: Sequence[str],
    *,
    limit: int | None = None,
    dies_at: int | None = None,
    environment: Mapping[str, str] | None = None,
) -> Program:
    """Start a command in a folder.

    No file that it writes may be larger than ``limit`` bytes. Training kills itself behind the update ``dies_at``.
    """
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(_PRELOADED)
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=_run, args=(folder, command, limit, dies_at, dict(environment or {}), theirs))
    process.start()
    theirs.close()
    assert os.read(ours.fileno(), 1) == b"\n"
    return Program(process, ours)


class Program:
    """One that runs."""

    def __init__(self, process: multiprocessing.process.BaseProcess, errors: Connection) -> None:
        self._process, self._errors, self._begun = process, errors, time.monotonic()

    def send(self, number: signal.Signals) -> None:
        """A signal; Ctrl-C is for the whole group."""
        assert self._process.pid is not None
        with contextlib.suppress(ProcessLookupError):  # it has ended
            (os.killpg if number is signal.SIGINT else os.kill)(self._process.pid, number)

    def wait(self) -> Ended:
        """Until it ends."""
        parts = []
        with self._errors:
            while part := os.read(self._errors.fileno(), 1 << 16):
                parts.append(part)
        self._process.join(_PATIENCE_S)
        assert self._process.exitcode is not None
        return Ended(self._process.exitcode, b"".join(parts).decode(), time.monotonic() - self._begun)


def _run(
    folder: Path,
    command: Sequence[str],
    limit: int | None,
    dies_at: int | None,
    environment: Mapping[str, str],
    errors: Connection,
) -> None:
    os.setsid()
    signal.signal(signal.SIGINT, signal.default_int_handler)  # which a shell may have had ignored
    os.chdir(folder)
    os.environ.update(environment)
    os.dup2(errors.fileno(), 2)
    errors.close()
    sys.stderr = os.fdopen(2, "w", buffering=1, closefd=False)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    module = f"{command[0].replace('-', '_')}.commands.main"
    importlib.import_module(module)  # before the clock begins
    if limit is not None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
    if dies_at is not None:
        _die_at(dies_at)
    os.write(2, b"\n")
    sys.argv = [*command]
    sys.exit(start(command[0], module))


def _die_at(number: int) -> None:
    from nmt_core.training.trainer import Trainer

    update = Trainer._update

    def dying(self: Trainer, *args: Any) -> None:
        update(self, *args)
        if self.progress.update == number:
            os.kill(os.getpid(), signal.SIGKILL)

    Trainer._update = dying  # type: ignore[method-assign]
