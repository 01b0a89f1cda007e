"""Windows of the lines of a text, which do not wait for lines that have not come yet."""

from __future__ import annotations

import itertools
import queue
import threading
from collections.abc import Iterable, Iterator

from nmt_core.files import read_text_lines


def windows_of_lines(path: str, size: int) -> Iterator[list[str]]:
    """Lines in groups of at most ``size``; of standard input those that are there.

    Nobody waits for a line that is still to come.
    """
    lines = read_text_lines(path, errors="surrogateescape")
    if path != "-":
        while window := list(itertools.islice(lines, size)):
            yield window
        return
    reader = LineReader(lines, 2 * size)
    while window := reader.take(size):
        yield window


class LineReader:
    """Lines that a thread reads ahead."""

    def __init__(self, lines: Iterable[str], ahead: int) -> None:
        self._queue: queue.Queue[str | BaseException | None] = queue.Queue(ahead)
        self._ended = False
        threading.Thread(target=self._run, args=(lines,), daemon=True).start()

    def _run(self, lines: Iterable[str]) -> None:
        try:
            for line in lines:
                self._queue.put(line)
            self._queue.put(None)
        except BaseException as error:  # raised where the lines are taken
            self._queue.put(error)

    def take(self, most: int) -> list[str]:
        """At least one line, and more that are there already; none at the end."""
        window: list[str] = []
        while not self._ended and len(window) < most and not (window and self._queue.empty()):
            item = self._queue.get()
            if isinstance(item, BaseException):
                raise item
            if item is None:
                self._ended = True
            else:
                window.append(item)
        return window
