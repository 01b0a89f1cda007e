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
from nmt_core.files import open_uncompressed, pack, partial_output
from nmt_core.files.output import PartialOutput
from nmt_core.jobs.journal import (
    AGAIN,
    ENDING,
    FORMAT,
    Content,
    Counts,
    Entry,
    Journal,
    Shard,
    check_identity,
    journal_line,
    journal_path,
    read_journal,
)

_SECONDS = 5.0  # of work that a power cut may cost
_BLOCK = 1 << 18
_RANGE = ".shards-"
_OLDER = ".parts"  # the directory in which earlier versions kept a job


class Piece(NamedTuple):
    """What a shard adds to each output, compressed where the output is, and what was counted meanwhile."""

    contents: tuple[bytes, ...]
    counts: Counts


@dataclass
class StreamedOutputs:
    """Outputs that are written as the input comes; nothing is kept of a job that ends before its end."""

    paths: Sequence[str]
    streams: Sequence[BinaryIO]
    counts: list[Counts] = field(default_factory=list)

    def append(self, shard: Shard, piece: Piece) -> None:
        """Add a finished shard behind the others."""
        for path, stream, content in zip(self.paths, self.streams, piece.contents, strict=True):
            stream.write(content)
            if path == "-":
                stream.flush()  # the reader of the pipe sees a translation as soon as it is there
        self.counts.append(piece.counts)

    def fill(self) -> None:
        """Give outputs without any shard what files without lines have: gzip and xz read no file without a byte."""
        for path, stream in zip(self.paths, self.streams, strict=True):
            stream.write(b"" if self.counts else pack(b"", path))
            stream.flush()


@dataclass
class JournaledOutputs:
    """Outputs in the making, with their journal; they stay for the next program if anything is finished.

    ``entries`` are the finished shards, in order; ``begun`` is the journal as it was read, ``stream`` writes to it.
    """

    paths: Sequence[str]
    files: Sequence[PartialOutput]
    stream: BinaryIO
    begun: Journal
    entries: list[Entry]
    synced: float = field(default_factory=time.monotonic)

    @property
    def counts(self) -> list[Counts]:
        """What was counted of each of them."""
        return [entry.counts for entry in self.entries]

    def resume(self, identity: Mapping[str, Any]) -> None:
        """Keep what is finished and undamaged; without anything finished, begin.

        Raises ConfigError where it was begun with another ``identity``.
        """
        if self.entries:
            check_identity(self.begun.identity or {}, identity, path=journal_path(self.paths[0]))
            self.drop_damaged()
        if not self.entries:
            self.stream.truncate(0)
            self.stream.write(journal_line({"journal": FORMAT, "identity": dict(identity)}))
            self.stream.flush()
        for number, file in enumerate(self.files):
            file.cut(self._end(len(self.entries), number))

    def drop_damaged(self) -> None:
        """Forget the entries from the first one on that the outputs do not hold."""
        kept = sum(1 for _ in self._undamaged())
        del self.entries[kept:]
        if kept:
            self.stream.truncate(self.begun.ends[kept - 1])

    def append(self, shard: Shard, piece: Piece) -> None:
        """Add a finished shard behind the others."""
        contents = []
        for file, content in zip(self.files, piece.contents, strict=True):
            file.stream.write(content)
            file.stream.flush()
            contents.append(Content(file.stream.tell(), crc32(content)))
        self.entries.append(Entry(shard, tuple(contents), piece.counts))
        value = {
            "shard": {"first": shard.first, "lines": shard.lines},
            "crc_in": shard.crc,
            "outputs": [content._asdict() for content in contents],
            "counts": piece.counts,
        }
        self.stream.write(journal_line(value))
        self.stream.flush()
        if time.monotonic() - self.synced >= _SECONDS:
            self.sync()

    def fill(self) -> None:
        """Give outputs without any shard what files without lines have: gzip and xz read no file without a byte."""
        for path, file in zip(self.paths, self.files, strict=True):
            file.stream.write(b"" if self.entries else pack(b"", path))

    def sync(self) -> None:
        """Have all of it survive a power cut."""
        for file in self.files:
            file.sync()
        os.fsync(self.stream.fileno())
        self.synced = time.monotonic()

    def piece(self, index: int) -> Piece:
        """What finished shard ``index`` added. Raises NmtError where it is damaged."""
        entry = self.entries[index]
        contents = []
        for number, content in enumerate(entry.contents):
            begin = self._end(index, number)
            contents.append(os.pread(self.files[number].stream.fileno(), content.end - begin, begin))
            if crc32(contents[-1]) != content.crc:
                problem = f"what was written of shard {index + 1} is damaged"
                raise NmtError(f"{self.paths[0]}: {problem}; {AGAIN}")
        return Piece(tuple(contents), entry.counts)

    def commit(self) -> None:
        """Give the outputs their names, the first one last; the journal goes."""
        for file in reversed(self.files):
            file.commit()
        self.discard()

    def discard(self) -> None:
        """Let the journal go, and outputs that have no name."""
        self.entries.clear()
        self.stream.truncate(0)

    def keep(self) -> None:
        """Keep what is finished for the next program; what has nothing finished goes."""
        for file in self.files:
            file.is_kept = file.is_kept or bool(self.entries)
        if not self.entries:
            os.unlink(journal_path(self.paths[0]))

    def _end(self, entries: int, number: int) -> int:
        """Where so many entries end in output ``number``."""
        return self.entries[entries - 1].contents[number].end if entries else 0

    def _undamaged(self) -> Iterator[Entry]:
        """The entries up to the first one that the outputs do not hold."""
        begins = [0] * len(self.files)
        for file in self.files:
            file.stream.seek(0)
        for entry in self.entries:
            for number, content in enumerate(entry.contents):
                if _crc_of(self.files[number].stream, content.end - begins[number]) != content.crc:
                    return
                begins[number] = content.end
            yield entry


@contextlib.contextmanager
def streamed_outputs(paths: Sequence[str]) -> Iterator[StreamedOutputs]:
    """Outputs that have their names at the end of the block."""
    with contextlib.ExitStack() as stack:
        yield StreamedOutputs(paths, [stack.enter_context(open_uncompressed(path)) for path in paths])


@contextlib.contextmanager
def journaled_outputs(paths: Sequence[str], *, restart: bool = False) -> Iterator[JournaledOutputs]:
    """The outputs at ``paths``, locked. With ``restart`` what is finished does not count.

    Raises NmtError where another program makes them, ConfigError for a journal of another version.
    """
    with contextlib.ExitStack() as stack:
        files = [stack.enter_context(partial_output(path)) for path in paths]
        path = journal_path(paths[0])
        journal = Journal() if restart else read_journal(path)
        try:
            stream = stack.enter_context(open(path, "ab"))
        except OSError as error:
            raise unreadable(path, error) from error
        outputs = JournaledOutputs(paths, files, stream, journal, journal.entries)
        stack.callback(outputs.keep)
        yield outputs


def range_paths(paths: Sequence[str], wanted: range) -> list[str]:
    """The outputs of a range."""
    return [f"{os.path.realpath(path)}{_RANGE}{wanted.start + 1}-{wanted.stop}" for path in paths]


def check_begun(output: str, identity: Mapping[str, Any]) -> None:
    """Raise ConfigError where the output, or a range of it, was begun as another job, or by an older version."""
    older = os.path.realpath(output) + _OLDER
    if os.path.isdir(older):
        problem = "holds a job that an older version began; finish it with that version, or remove it"
        raise ConfigError(f"{older}: {problem}")
    for path in begun(output):
        journal = read_journal(path)
        if journal.entries:
            check_identity(journal.identity or {}, identity, path=path)


def begun(output: str) -> list[str]:
    """The journals of an output and of its ranges."""
    made = [output, *(range_paths([output], wanted)[0] for wanted in ranges_begun(output))]
    return [path for path in map(journal_path, made) if os.path.exists(path)]


def ranges_begun(output: str) -> list[range]:
    """Those of an output of which there is a journal."""
    beginning = journal_path(output).removesuffix(ENDING) + _RANGE
    found = []
    for path in glob.glob(f"{glob.escape(beginning)}*{ENDING}"):
        match = re.fullmatch("([1-9][0-9]*)-([0-9]+)", path[len(beginning) : -len(ENDING)])
        if match:
            found.append(range(int(match[1]) - 1, int(match[2])))
    return sorted(found, key=lambda wanted: (wanted.start, wanted.stop))


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
