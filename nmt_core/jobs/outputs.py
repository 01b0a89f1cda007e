"""The outputs of a job in the making, with the journal of what is in them; and those of ranges (``--shards A-B``).

``OUT`` is written as every output is (``nmt_core/files/output.py``). The range A-B is an output ``OUT.shards-A-B`` with
a journal of its own, which gets no name: it is put together with the others.
"""

from __future__ import annotations

import contextlib
import glob
import os
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, BinaryIO, NamedTuple

from isal.isal_zlib import crc32

from nmt_core.base.errors import ConfigError, NmtError, unreadable
from nmt_core.files import beside, pack, partial_output
from nmt_core.files.output import PartialOutput
from nmt_core.jobs.journal import (
    AGAIN,
    JOURNAL,
    Content,
    Counts,
    Entry,
    Journal,
    Shard,
    check_identity,
    first_line,
    read_journal,
)

_SECONDS = 5.0  # of work that a power cut may cost
_BLOCK = 1 << 18
_RANGE = ".shards-"
_OLDER = ".parts"  # the directory in which earlier versions kept a job


class Piece(NamedTuple):
    """What a shard adds to each output, and what was counted meanwhile."""

    contents: tuple[bytes, ...]
    counts: Counts


@dataclass
class Outputs:
    """Outputs in the making, with what is finished, in order.

    With a ``journal`` they stay for the next program if anything is finished.
    """

    files: Sequence[PartialOutput]
    journal: BinaryIO | None = None
    entries: list[Entry] = field(default_factory=list)
    synced: float = field(default_factory=time.monotonic)

    @property
    def counts(self) -> list[Counts]:
        """What was counted of each shard."""
        return [entry.counts for entry in self.entries]

    def append(self, shard: Shard, piece: Piece) -> None:
        """Add a finished shard behind the others, whose pieces are compressed where the output is."""
        contents = []
        for file, end, content in zip(self.files, self._ends(), piece.contents, strict=True):
            file.stream.write(content)
            file.stream.flush()
            contents.append(Content(end + len(content), crc32(content)))
        self.entries.append(Entry(shard, tuple(contents), piece.counts))
        if self.journal is not None:
            self.journal.write(self.entries[-1].line())
            self.journal.flush()
            if time.monotonic() - self.synced >= _SECONDS:
                self.sync()

    def sync(self) -> None:
        """Have all of it survive a power cut."""
        for stream in (*(file.stream for file in self.files), self.journal):
            if stream is not None:
                os.fsync(stream.fileno())
        self.synced = time.monotonic()

    def fill(self) -> None:
        """Give outputs without any shard what files without lines have: gzip and xz read no file without a byte."""
        for file in self.files if not self.entries else ():
            file.stream.write(pack(b"", file.path))
            file.stream.flush()

    def commit(self) -> None:
        """Give the outputs their names, the first one last; the journal goes."""
        for file in reversed(self.files):
            file.commit()
        self.entries.clear()

    def piece(self, index: int) -> Piece:
        """What finished shard ``index`` added. Raises NmtError where it is damaged."""
        entry = self.entries[index]
        contents = []
        for file, begin, content in zip(self.files, self._ends(index), entry.contents, strict=True):
            contents.append(os.pread(file.stream.fileno(), content.end - begin, begin))
            if crc32(contents[-1]) != content.crc:
                raise NmtError(f"{file.path}: what was written of shard {index + 1} is damaged; {AGAIN}")
        return Piece(tuple(contents), entry.counts)

    def keep_undamaged(self, begun: Journal) -> int:
        """Go on behind the entries of a journal up to the first one that the files do not hold; how many they are."""
        for entry in begun.entries:
            for file, begin, content in zip(self.files, self._ends(), entry.contents, strict=True):
                file.stream.seek(begin)
                if _crc_of(file.stream, content.end - begin) != content.crc:
                    return len(self.entries)
            self.entries.append(entry)
        return len(self.entries)

    def _ends(self, entries: int | None = None) -> list[int]:
        """Where so many entries, or all, end in each file."""
        finished = self.entries[:entries]
        return [content.end for content in finished[-1].contents] if finished else [0] * len(self.files)

    def cut(self) -> None:
        """Take away what the files have behind the last entry."""
        for file, end in zip(self.files, self._ends(), strict=True):
            file.cut(end)


@contextlib.contextmanager
def open_outputs(paths: Sequence[str]) -> Iterator[Outputs]:
    """The outputs at ``paths``, of which nothing is kept where the block ends before their end."""
    with contextlib.ExitStack() as stack:
        outputs = Outputs([stack.enter_context(partial_output(path)) for path in paths])
        outputs.cut()
        yield outputs


@contextlib.contextmanager
def resumed_outputs(paths: Sequence[str], identity: Mapping[str, Any], *, restart: bool = False) -> Iterator[Outputs]:
    """The same with their journal: what the job of this ``identity`` has finished there counts.

    With ``restart`` it does not. Raises NmtError where another program makes them.
    """
    path = beside(paths[0], JOURNAL)
    with contextlib.ExitStack() as stack:
        outputs = Outputs([stack.enter_context(partial_output(one)) for one in paths])
        begun = Journal() if restart else read_journal(path)
        try:
            outputs.journal = journal = stack.enter_context(open(path, "ab"))
        except OSError as error:
            raise unreadable(path, error) from error
        stack.callback(_keep, outputs, path)
        kept = outputs.keep_undamaged(begun) if begun.identity == identity else 0
        journal.truncate(begun.ends[kept - 1] if kept else 0)
        if not kept:
            journal.write(first_line(identity))
            journal.flush()
        outputs.cut()
        yield outputs


def _keep(outputs: Outputs, journal: str) -> None:
    """Keep what is finished for the next program; what has nothing finished goes."""
    for file in outputs.files:
        file.is_kept = file.is_kept or bool(outputs.entries)
    if not outputs.entries:
        os.unlink(journal)


def range_paths(paths: Sequence[str], wanted: range) -> list[str]:
    """The outputs of a range."""
    return [f"{os.path.realpath(path)}{_RANGE}{wanted.start + 1}-{wanted.stop}" for path in paths]


def begun(output: str) -> list[tuple[str, range | None]]:
    """The journals of an output, with their ranges, in order; None stands for the whole output."""
    beginning, found = beside(output, ""), []
    for path in glob.glob(f"{glob.escape(beginning)}*{JOURNAL}"):
        match = re.fullmatch(f"(?:{_RANGE}([1-9][0-9]*)-([0-9]+))?", path[len(beginning) : -len(JOURNAL)])
        if match is not None:
            found.append((path, range(int(match[1]) - 1, int(match[2])) if match[1] else None))
    return sorted(found, key=lambda one: (one[1].start, one[1].stop) if one[1] else (-1, -1))


def check_begun(output: str, identity: Mapping[str, Any]) -> None:
    """Raise ConfigError where the output, or a range of it, was begun as another job, or by an older version."""
    older = os.path.realpath(output) + _OLDER
    if os.path.isdir(older):
        problem = "holds a job that an older version began; finish it with that version, or remove it"
        raise ConfigError(f"{older}: {problem}")
    for path, _ in begun(output):
        journal = read_journal(path)
        if journal.entries:
            check_identity(journal.identity or {}, identity, path=path)


def _crc_of(stream: BinaryIO, size: int) -> int | None:
    """The CRC-32 of the next bytes; None where there are fewer."""
    crc = 0
    while size > 0:
        block = stream.read(min(size, _BLOCK))
        if not block:
            return None
        crc = crc32(block, crc)
        size -= len(block)
    return crc
