"""Logs that never delay a call: a bounded queue holds the records, and a thread of the library writes them.

Where the disk is full, or nobody reads, lines are dropped and counted. A file that was renamed is followed.
"""

from __future__ import annotations

import io
import logging
import os
import queue
import time
from collections.abc import Callable
from logging.handlers import QueueHandler, QueueListener, WatchedFileHandler

from nmt_core.base.errors import InputError
from nmt_core.base.messages import show

STANDARD_ERROR = "-"
_WAITING = 10_000  # lines
_LAST = 1.0  # seconds for what waits when the log is closed


class LogQueue(QueueHandler):
    """The queue of one log; ``path`` is a file to append to, or ``-`` for standard error. Raises InputError.

    ``dropped`` is called for every line that is not written.
    """

    def __init__(self, path: str, *, dropped: Callable[[], object] = lambda: None) -> None:
        self._records: queue.Queue[logging.LogRecord] = queue.Queue(_WAITING)
        super().__init__(self._records)
        self.dropped = dropped
        self.addFilter(_is_of_the_server)
        if path != STANDARD_ERROR:
            _check_writable(path)
        QueueListener(self._records, _Target(path, lambda: self.dropped())).start()

    def write(self, line: str) -> None:
        """Take a line (without its end), to be written soon."""
        self.handle(logging.makeLogRecord({"msg": line}))

    def handleError(self, record: logging.LogRecord) -> None:
        """The queue is full."""
        self.dropped()

    def close(self) -> None:
        """Wait until what was taken is written, for a moment at most."""
        end = time.monotonic() + _LAST
        while self._records.unfinished_tasks and time.monotonic() < end:
            time.sleep(0.002)
        super().close()


class _Target(WatchedFileHandler):
    """Writes without a buffer and without a lock, for which the end of the process would wait."""

    def __init__(self, path: str, failed: Callable[[], object]) -> None:
        super().__init__(os.devnull if path == STANDARD_ERROR else path, delay=True)
        self._failed = failed
        if path == STANDARD_ERROR:
            self.stream, self.reopenIfNeeded = _unbuffered(2), lambda: None  # type: ignore[method-assign]

    def createLock(self) -> None:
        """None: only the listener's thread writes."""
        self.lock = None

    def _open(self) -> io.TextIOWrapper:
        return _unbuffered(self.baseFilename)

    def emit(self, record: logging.LogRecord) -> None:
        """Write the line; opening the file may fail, too."""
        try:
            super().emit(record)
        except OSError:
            self._failed()

    def handleError(self, record: logging.LogRecord) -> None:
        """The line could not be written."""
        self._failed()


def _unbuffered(file: int | str) -> io.TextIOWrapper:
    raw = io.FileIO(file, "a", closefd=file != 2)
    return io.TextIOWrapper(raw, encoding="utf-8", errors="replace", write_through=True)


def _check_writable(path: str) -> None:
    """Raise InputError for a file that could not be appended to; the reader of a FIFO is not waited for."""
    try:
        os.close(os.open(path, os.O_WRONLY | os.O_APPEND | os.O_NONBLOCK))
    except FileNotFoundError as error:
        if not os.access(os.path.dirname(path) or ".", os.W_OK | os.X_OK):
            raise InputError(path, "cannot be written (its directory does not exist, or takes no files)") from error
    except OSError as error:
        raise InputError(path, f"cannot be written ({error.strerror})") from error


class OneLine(logging.Formatter):
    """A server's own messages, with the name of its program; nothing in them is obeyed by a terminal."""

    def __init__(self, program: str) -> None:
        super().__init__(f"{program.replace('%', '%%')}: %(message)s")

    def format(self, record: logging.LogRecord) -> str:
        """Tracebacks keep their lines."""
        return "\n".join(map(show, super().format(record).split("\n")))


def _is_of_the_server(record: logging.LogRecord) -> bool:
    """False for what the library says of a client that has gone before it was told its status."""
    return record.exc_info is None or getattr(record.exc_info[0], "__name__", "") != "ExecuteBatchError"
