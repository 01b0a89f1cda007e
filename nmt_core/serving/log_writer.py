"""Lines to a file or to standard error that never make anybody wait, and never fail anybody.

A thread writes what a bounded queue holds. Where the disk is full, the reader is gone or does not read,
lines are dropped and counted.
"""

from __future__ import annotations

import contextlib
import itertools
import logging
import os
import queue
import threading
from collections.abc import Callable

from nmt_core.base.errors import InputError
from nmt_core.base.messages import show

_WAITING = 10_000  # lines
_AT_ONCE = 1_000  # lines of a write
_TOGETHER = 0.02  # seconds from a line to the write that takes it and what has come meanwhile
_LAST = 1.0  # seconds for what waits when the log is closed
STANDARD_ERROR = "-"
_GO_ON = "in the newer file"  # itself, not a line with these words


class LogWriter:
    """The lines of one log; ``path`` is a file to append to, or ``-`` for standard error. Raises InputError.

    ``dropped`` is called for every line that is not written.
    """

    def __init__(self, path: str, *, dropped: Callable[[], None] = lambda: None) -> None:
        self._path, self._dropped = path, dropped
        self._is_new = path != STANDARD_ERROR and not os.path.lexists(path)
        self._file = self._open()
        self._newer: int | None = None  # the file to go on in
        self._exchange = threading.Lock()
        self._lines: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        self._closing, self._written = threading.Event(), threading.Event()
        threading.Thread(target=self._run, name=f"log {path}", daemon=True).start()

    def write(self, line: str) -> None:
        """Take a line (without its end), to be written soon."""
        if self._lines.qsize() < _WAITING:
            self._lines.put(line)
        else:
            self._dropped()

    def count_dropped(self, dropped: Callable[[], None]) -> None:
        """Call it for lines that are dropped from now on."""
        self._dropped = dropped

    def reopen(self) -> None:
        """Go on in the file that has the name now, after the old one was renamed. Raises InputError."""
        if self._path != STANDARD_ERROR:
            file: int | None = self._open()
            with self._exchange:
                file, self._newer = self._newer, file
            if file is None:
                self._lines.put(_GO_ON)  # behind the lines that belong to the old file
            else:  # nothing was written to it
                os.close(file)

    def close(self, *, failed: bool = False) -> None:
        """Write what waits, for a moment at most. Of what has ``failed`` no new file without a line stays."""
        self._lines.put(None)
        self._closing.set()
        self._written.wait(_LAST)
        if failed and self._is_new:
            with contextlib.suppress(OSError):
                if not os.path.getsize(self._path):
                    os.unlink(self._path)

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
        lines: list[str | None] = []
        while None not in lines:
            lines = [self._lines.get()]
            self._closing.wait(_TOGETHER)  # so that many lines wake this thread once
            while len(lines) < _AT_ONCE and not self._lines.empty():
                lines.append(self._lines.get())
            for go_on, part in itertools.groupby(lines, key=lambda line: line is _GO_ON):
                if go_on:
                    self._go_on()
                else:
                    self._write_all("".join(f"{line}\n" for line in part if line is not None))
        self._written.set()

    def _write_all(self, text: str) -> None:
        content = text.encode("utf-8", "replace")
        try:
            while content:
                content = content[os.write(self._file, content) :]
        except OSError:
            for _ in range(content.count(b"\n")):
                self._dropped()

    def _go_on(self) -> None:
        """In the newest file."""
        with self._exchange:
            newer, self._newer = self._newer, None
        if newer is not None:
            os.close(self._file)
            self._file = newer


def is_of_us(record: logging.LogRecord) -> bool:
    """False for what the library says of a client that has gone before it was told its status."""
    return record.exc_info is None or getattr(record.exc_info[0], "__name__", "") != "ExecuteBatchError"


class LogHandler(logging.Handler):
    """What the library and others log, as lines of a ``LogWriter``."""

    def __init__(self, writer: LogWriter) -> None:
        super().__init__()
        self._writer = writer
        self.addFilter(is_of_us)

    def emit(self, record: logging.LogRecord) -> None:
        """Hand it over."""
        try:
            self._writer.write("\n".join(map(show, self.format(record).split("\n"))))
        except Exception as error:
            self._writer.write(f"a message could not be formatted ({error})")
