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
from typing import Any, BinaryIO, Self

from isal.isal_zlib import crc32

from nmt_core.base.errors import ConfigError, NmtError
from nmt_core.files.compression import pack, suffix_of
from nmt_core.files.output import partial_output
from nmt_core.jobs.journal import AGAIN, ENDING, Content, Entry, Journal, check_identity, journal_path
from nmt_core.jobs.shards import Piece, Shard

_SECONDS = 5.0  # of work that a power cut may cost
_BLOCK = 1 << 18
_RANGE = ".shards-"
_OLDER = ".parts"  # the directory in which earlier versions kept a job


class JournaledOutputs:
    """The outputs at ``paths``, locked in a ``with`` block; they stay for the next program if anything is finished.

    With ``restart`` what is finished does not count. Raises NmtError where another program makes them.
    """

    def __init__(self, paths: Sequence[str], *, restart: bool = False) -> None:
        self._restart = restart
        self._paths, self._path = paths, paths[0]
        self._empty = [empty(path) for path in paths]
        self._stack = contextlib.ExitStack()
        self._synced = time.monotonic()

    def __enter__(self) -> Self:
        with contextlib.ExitStack() as stack:
            self._files = [stack.enter_context(partial_output(path)) for path in self._paths]
            self._journal = Journal(journal_path(self._path), to_restart=self._restart)
            stack.callback(self._leave)
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *error: object) -> bool | None:
        return self._stack.__exit__(*error)  # type: ignore[arg-type]  # which are those of the block

    @property
    def entries(self) -> Sequence[Entry]:
        """The finished shards, in order."""
        return self._journal.entries

    def resume(self, identity: Mapping[str, Any]) -> None:
        """Keep what is finished and undamaged; without anything finished, begin.

        Raises ConfigError where it was begun with another ``identity``.
        """
        if self._journal.entries:
            check_identity(self._journal.identity or {}, identity, path=journal_path(self._path))
            self.drop_damaged()
        if not self._journal.entries:
            self._journal.begin(identity)
        for number, file in enumerate(self._files):
            file.cut(self._end(len(self.entries), number))

    def append(self, shard: Shard, piece: Piece) -> None:
        """Add a finished shard behind the others."""
        contents = []
        for file, content in zip(self._files, piece.contents, strict=True):
            file.stream.write(content)
            file.stream.flush()
            contents.append(Content(file.stream.tell(), crc32(content)))
        self._journal.append(Entry(shard, tuple(contents), piece.counts))
        if time.monotonic() - self._synced >= _SECONDS:
            self.sync()

    def fill(self) -> None:
        """Give outputs of an input without any shard what files without lines have."""
        for file, content in zip(self._files, self._empty if not self.entries else (), strict=False):
            file.stream.write(content)
            file.stream.flush()

    def sync(self) -> None:
        """Have all of it survive a power cut."""
        for file in self._files:
            file.sync()
        self._journal.sync()
        self._synced = time.monotonic()

    def piece(self, index: int) -> Piece:
        """What finished shard ``index`` added. Raises NmtError where it is damaged."""
        entry = self.entries[index]
        contents = []
        for number, content in enumerate(entry.contents):
            begin = self._end(index, number)
            contents.append(os.pread(self._files[number].stream.fileno(), content.end - begin, begin))
            if crc32(contents[-1]) != content.crc:
                problem = f"what was written of shard {index + 1} is damaged"
                raise NmtError(f"{self._path}: {problem}; {AGAIN}")
        return Piece(tuple(contents), entry.counts)

    def drop_damaged(self) -> None:
        """Forget the entries from the first one on that the outputs do not hold."""
        self._journal.cut(sum(1 for _ in self._undamaged()))

    def commit(self) -> None:
        """Give the outputs their names, the first one last."""
        for file in reversed(self._files):
            file.commit()

    def discard(self) -> None:
        """Let the journal go, and outputs that have no name."""
        self._journal.begin({})
        self._journal.remove()

    def _leave(self) -> None:
        """Keep what is finished for the next program; what has nothing finished goes."""
        if not self._journal.entries:
            with contextlib.suppress(FileNotFoundError):  # it was discarded
                self._journal.remove()
            return
        for file in self._files:
            file.is_kept = True
        self._journal.close()

    def _end(self, entries: int, number: int) -> int:
        """Where so many entries end in output ``number``."""
        return self.entries[entries - 1].contents[number].end if entries else 0

    def _undamaged(self) -> Iterator[Entry]:
        """The entries up to the first one that the outputs do not hold."""
        begins = [0] * len(self._files)
        for file in self._files:
            file.stream.seek(0)
        for entry in self.entries:
            for number, content in enumerate(entry.contents):
                if _crc_of(self._files[number].stream, content.end - begins[number]) != content.crc:
                    return
                begins[number] = content.end
            yield entry


class Ranges:
    """What ranges of the outputs at ``paths`` hold, for the program that puts all together. Locked as they are.

    With ``restart`` they hold nothing.
    """

    def __init__(self, paths: Sequence[str], *, restart: bool = False) -> None:
        self._restart = restart
        self._found: dict[int, tuple[JournaledOutputs, int]] = {}
        self._all: list[JournaledOutputs] = []
        self._paths = paths
        self._stack = contextlib.ExitStack()

    def __enter__(self) -> Self:
        with contextlib.ExitStack() as stack:
            for wanted in _ranges(self._paths[0]):
                outputs = JournaledOutputs(range_paths(self._paths, wanted), restart=self._restart)
                self._all.append(stack.enter_context(outputs))
                outputs.drop_damaged()
                for number in range(len(outputs.entries)):
                    self._found.setdefault(wanted.start + number, (outputs, number))
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *error: object) -> bool | None:
        return self._stack.__exit__(*error)  # type: ignore[arg-type]  # which are those of the block

    def holds(self, index: int) -> bool:
        """Whether a range has shard ``index``."""
        return index in self._found

    def piece(self, index: int) -> Piece:
        """What a range has of shard ``index``."""
        outputs, number = self._found[index]
        return outputs.piece(number)

    def shard(self, index: int) -> Shard:
        """The shard as it was when it was finished."""
        outputs, number = self._found[index]
        return outputs.entries[number].shard

    def discard(self) -> None:
        """All of them are put together, or wanted no more."""
        for outputs in self._all:
            outputs.discard()
        self._found, self._all = {}, []


def empty(path: str) -> bytes:
    """What an output without lines holds: gzip and xz read no file without a byte."""
    return pack(b"", suffix_of(path))


def range_paths(paths: Sequence[str], wanted: range) -> list[str]:
    """The outputs of a range."""
    return [f"{os.path.realpath(path)}{_RANGE}{wanted.start + 1}-{wanted.stop}" for path in paths]


def check_begun(output: str, identity: Mapping[str, Any]) -> None:
    """Raise ConfigError where the output, or a range of it, was begun as another job, or by an older version."""
    target = os.path.realpath(output)
    if os.path.isdir(target + _OLDER):
        problem = "holds a job that an older version began; finish it with that version, or remove it"
        raise ConfigError(f"{target}{_OLDER}: {problem}")
    for path in begun(output):
        journal = Journal(path)
        journal.close()
        if journal.entries:
            check_identity(journal.identity or {}, identity, path=path)


def begun(output: str) -> list[str]:
    """The journals of an output and of its ranges."""
    made = [output, *(range_paths([output], wanted)[0] for wanted in _ranges(output))]
    return [path for path in map(journal_path, made) if os.path.exists(path)]


def _ranges(output: str) -> list[range]:
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
