"""Programs that a command starts: stand-ins that never end, and whether they are still running."""

from __future__ import annotations

import contextlib
import time
from pathlib import Path

_PATIENCE_S = 20.0


def wait_until_started(process: Path) -> int:
    """The id that a program writes as a line into the file ``process``."""
    until = time.monotonic() + _PATIENCE_S
    while not (process.exists() and process.read_text().endswith("\n")):
        assert time.monotonic() < until
        time.sleep(0.01)
    return int(process.read_text())


def wait_until_ended(process: int) -> None:
    """Return when there is no such process, or when all that is left of it is its exit code."""
    until = time.monotonic() + _PATIENCE_S
    while is_running(process):
        assert time.monotonic() < until
        time.sleep(0.01)


def is_running(process: int) -> bool:
    """Whether it is there and has not ended."""
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        return Path(f"/proc/{process}/stat").read_text().rpartition(") ")[2][0] not in "ZX"
    return False
