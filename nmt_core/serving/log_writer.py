"""Lines to a file or to standard error that never make anybody wait, and never fail anybody.

A thread writes what a bounded queue holds. Where the disk is full, the reader is gone or does not read,
lines are dropped and counted.
"""

from __future__ import annotations

import logging
import os
import queue
import threading
import time
from collections.abc import Callable

from nmt_core.errors import InputError
from nmt_core.messages import show

_WAITING = 10_000  # lines
_LAST = 1.0  # seconds for what waits when the log is closed
STANDARD_ERROR = "-"


class LogWriter:
    """The lines of one log; ``path`` is a file to append to, or ``-`` for standard error. Raises InputError.

    ``dropped`` is called for every line that is not written.
    """

    def __init__(self, path: str, *, dropped: Callable[[], None] = lambda: None) -> None:
        self._path, self._dropped = path, dropped
        self._file = self._open()
        self._lines: queue.Queue[str | None] = queue.Queue(_WAITING)
        self._written = threading.Event()
        threading.Thread(target=self._run, name=f"log {path}", daemon=True).start()

    def write(self, line: str) -> None:
        """Take a line (without its end), to be written soon."""
        try:
            self._lines.put_nowait(line)
        except queue.Full:
            self._dropped()

    def count_dropped(self, dropped: Callable[[], None]) -> None:
        """Call it for lines that are dropped from now on."""
        self._dropped = dropped

    def reopen(self) -> None:
        """Go on in the file that has the name now, after the old one was renamed. Raises InputError."""
        if self._path == STANDARD_ERROR:
            return
        old, self._file = self._file, self._open()
        later = threading.Timer(_LAST, os.close, [old])  # a line may be on its way
        later.daemon = True
        later.start()

    def close(self) -> None:
        """Write what waits, for a moment at most."""
        end = time.monotonic() + _LAST
        while time.monotonic() < end:
            try:
                self._lines.put_nowait(None)
                break
            except queue.Full:
                time.sleep(0.01)
        self._written.wait(max(0.0, end - time.monotonic()))

    def _open(self) -> int:
        if self._path == STANDARD_ERROR:
            return 2
        try:
            file = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NONBLOCK, 0o644)
            os.set_blocking(file, True)  # only opening must not wait, for the reader of a FIFO
            return file
        except OSError as error:
            raise InputError(self._path, f"cannot be written ({error.strerror})") from error

    def _run(self) -> None:
        while (line := self._lines.get()) is not None:
            try:
                _write_all(self._file, (line + "\n").encode("utf-8", "replace"))
            except OSError:
                self._dropped()
        self._written.set()


class LogHandler(logging.Handler):
    """What the library and others log, as lines of a ``LogWriter``."""

    def __init__(self, writer: LogWriter) -> None:
        super().__init__()
        self._writer = writer

    def emit(self, record: logging.LogRecord) -> None:
        """Hand it over."""
        try:
            self._writer.write("\n".join(map(show, self.format(record).split("\n"))))
        except Exception as error:
            self._writer.write(f"a message could not be formatted ({error})")


def _write_all(file: int, content: bytes) -> None:
    while content:
        content = content[os.write(file, content) :]
