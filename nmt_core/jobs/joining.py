"""The files that a job makes: parts one behind the other, put there while others are still being done."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Sequence
from typing import BinaryIO

from nmt_core.jobs.parts import Damaged, Parts

_AT_ONCE = 4  # parts, while the workers wait for more to do
_BEHIND = 8 << 20  # bytes that are left for the disk at most, before it is told to begin


class Joined:
    """The parts in ``streams``, of which there is one for each file, from the first on; ``counts`` are theirs."""

    def __init__(self, parts: Parts, streams: Sequence[BinaryIO]) -> None:
        self._parts, self._streams = parts, streams
        self._begun = [0 for _ in streams]  # what the disk has been told to keep
        self._damaged = False
        self.counts: list[dict[str, float]] = []

    def go_on(self, end: int) -> None:
        """Append some of the parts before place ``end``, which are finished; none from one on that is damaged."""
        with contextlib.suppress(Damaged):
            for _ in range(min(_AT_ONCE, end - len(self.counts))):
                if not self._damaged:
                    self.append()

    def append(self) -> None:
        """Append the next part. Raises Damaged where it is not what was written; it is not in the files then."""
        ends = [stream.tell() for stream in self._streams]
        self._damaged = True
        try:
            counts = self._parts.copy(len(self.counts), self._streams)
        except Damaged:
            for stream, end in zip(self._streams, ends, strict=True):
                stream.seek(end)
                stream.truncate()
            raise
        self._damaged = False
        self.counts.append(counts)
        self._have_written()

    def _have_written(self) -> None:
        """Have the disk begin with what it will be waited for at the end."""
        for number, stream in enumerate(self._streams):
            behind = stream.tell() - self._begun[number]
            if behind >= _BEHIND:
                stream.flush()
                with contextlib.suppress(OSError):  # a file system that knows no such thing
                    os.posix_fadvise(stream.fileno(), self._begun[number], behind, os.POSIX_FADV_DONTNEED)
                self._begun[number] += behind
