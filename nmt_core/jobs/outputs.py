"""The outputs of a job in the making, with the journal of what is in them.

``OUT`` is written as every output is (``nmt_core/files/output.py``). A range of shards (``--shards A-B``) is an output
``OUT.shards-A-B`` with a journal of its own. It gets no name: the job without ``--shards`` puts the ranges together.

On the disk, in order:

1. ``.OUT.hybridmt.tmp`` is made and locked; the journal ``.OUT.hybridmt.journal`` begins with the job's identity.
2. For each shard: its bytes in the first, then its line in the second; both are synced every few seconds.
3. When all are done, the metadata and then the outputs are synced and renamed, the first output last.
4. The journal is removed. A program that is killed between 3 and 4 does the work again.
"""

from __future__ import annotations

import contextlib
import glob
import os
import re
import stat
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, BinaryIO, NamedTuple

from isal.isal_zlib import crc32

from nmt_core.base.errors import NmtError
from nmt_core.files import PARTIAL, beside, pack, partial_output
from nmt_core.files.output import PartialOutput
from nmt_core.jobs.journal import AGAIN, JOURNAL, Content, Counts, Entry, Shard, journal_line, read_journal

_SECONDS = 5.0  # of work that a power cut may cost
_RANGE = ".shards-"


class Result(NamedTuple):
    """What a worker makes of a shard: its content for each output, compressed as that is, and what it counted."""

    contents: tuple[bytes, ...]
    counts: Counts


@dataclass
class Outputs:
    """Outputs in the making. With a ``journal``, ``kept`` shards of them stay for the next program.

    ``before`` are the shards that an earlier program has done, in order.
    ``ranges`` are the outputs of other programs that are put together in these.
    """

    files: Sequence[PartialOutput]
    journal: BinaryIO | None = None
    before: list[Entry] = field(default_factory=list)
    kept: int = 0
    ranges: dict[range, Outputs] = field(default_factory=dict)
    synced: float = field(default_factory=time.monotonic)

    @contextlib.contextmanager
    def journaled(self, path: str, identity: Mapping[str, Any], *, restart: bool) -> Iterator[None]:
        """With a journal at ``path``: the shards that are in at the end of the block stay for the next program."""
        if os.path.lexists(path) and not stat.S_ISREG(os.lstat(path).st_mode):
            raise NmtError(f"{path}: cannot be written (it is in the way of a file of this name; remove it)")
        found = [] if restart else read_journal(path, identity)
        self.resume([entry for entry, _ in found])
        try:
            self.journal = open(path, "ab")  # noqa: SIM115 (closed below)
        except OSError as error:
            raise NmtError(f"{path}: cannot be written ({error.strerror})") from error
        try:
            self.journal.truncate(found[self.kept - 1][1] if self.kept else 0)
            if not self.kept:
                self.journal.write(journal_line(identity))
                self.journal.flush()
            yield
        finally:
            with contextlib.suppress(OSError):  # on a full disk the last line stays out, and its shard is done again
                self.journal.close()
            if not self.kept:
                os.unlink(path)

    def resume(self, entries: Sequence[Entry]) -> None:
        """Keep the leading ``entries`` whose content is in the files, and continue after them."""
        ends = [0] * len(self.files)
        for entry in entries:
            self.before.append(entry)
            try:
                self.result(self.kept)
            except (NmtError, OSError, ValueError, OverflowError):  # damage, or an entry that no job wrote
                self.before.pop()
                break
            self.kept += 1
            ends = [content.end for content in entry.outputs]
        for file, end in zip(self.files, ends, strict=True):
            file.cut(end)

    def append(self, shard: Shard, result: Result) -> None:
        """Add a shard behind the others."""
        for file, content in zip(self.files, result.contents, strict=True):
            file.stream.write(content)
            file.stream.flush()
        self.kept += 1
        if self.journal is not None:
            ends = [file.stream.tell() for file in self.files]
            contents = tuple(map(Content, ends, map(crc32, result.contents)))
            self.journal.write(journal_line(Entry(shard, contents, result.counts)._asdict()))
            self.journal.flush()
            for file in self.files:  # at once: whatever ends the program, also while it cleans up
                file.is_kept = True
            if time.monotonic() - self.synced >= _SECONDS:
                self.sync()

    def sync(self) -> None:
        """Have all of it survive a power cut."""
        for stream in (*(file.stream for file in self.files), self.journal):
            if stream is not None:
                os.fsync(stream.fileno())
        self.synced = time.monotonic()

    def commit(self) -> None:
        """Give the outputs their names, the first one last; the journals go."""
        for file in reversed(self.files):
            if not self.kept:  # gzip and xz read no file without a byte
                file.stream.write(pack(b"", file.path))
            file.commit()
        self.kept = 0
        for outputs in self.ranges.values():
            outputs.discard()

    def discard(self) -> None:
        """Keep nothing for the next program."""
        self.kept = 0
        for file in self.files:
            file.is_kept = False

    def result(self, index: int) -> Result:
        """The result of shard ``index`` of those ``before``. Raises NmtError where it is damaged."""
        entry, contents = self.before[index], []
        begins = [content.end for content in self.before[index - 1].outputs] if index else [0] * len(self.files)
        for file, begin, (end, crc) in zip(self.files, begins, entry.outputs, strict=True):
            contents.append(os.pread(file.stream.fileno(), end - begin, begin))
            if crc32(contents[-1]) != crc:
                raise NmtError(f"{file.path}: what was written of shard {index + 1} is damaged; {AGAIN}")
        return Result(tuple(contents), entry.counts)


@contextlib.contextmanager
def open_outputs(
    paths: Sequence[str],
    identity: Mapping[str, Any] | None = None,
    *,
    shards: range | None = None,
    restart: bool = False,
) -> Iterator[Outputs]:
    """The outputs at ``paths``, or of a range of ``shards``. Raises NmtError where another program makes them.

    With an ``identity`` they have a journal, and what the same job has done counts, unless it is to ``restart``.
    Raises ConfigError where they, or a range of them, belong to another job.
    """
    with contextlib.ExitStack() as stack:

        def opened(one: range | None) -> Outputs:
            ending = "" if one is None else f"{_RANGE}{one.start + 1}-{one.stop}"
            here = [os.path.realpath(path) + ending if ending else path for path in paths]
            found = Outputs([stack.enter_context(partial_output(path)) for path in here])
            if identity is None:
                found.resume([])
            else:
                stack.enter_context(found.journaled(beside(here[0], JOURNAL), identity, restart=restart))
            return found

        outputs = opened(shards)
        if identity is not None:
            for path, other in begun(paths[0]).items():
                if other is not None and shards is None:
                    outputs.ranges[other] = opened(other)
                elif other != shards and not restart:
                    read_journal(path, identity)
        yield outputs


def begun(output: str) -> dict[str, range | None]:
    """The journals of an output that is being made, each with its range of shards; None is the whole job.

    A range is known by its content, which is made before its journal and removed behind it.
    """
    beginning, found = beside(output, ""), dict[str, range | None]()
    if os.path.exists(f"{beginning}{JOURNAL}"):
        found[f"{beginning}{JOURNAL}"] = None
    name = re.compile(f"({_RANGE}([1-9][0-9]*)-([0-9]+)){re.escape(PARTIAL)}")
    for path in sorted(glob.glob(f"{glob.escape(beginning)}{_RANGE}*{PARTIAL}")):
        if match := name.fullmatch(path.removeprefix(beginning)):
            found[f"{beginning}{match[1]}{JOURNAL}"] = range(int(match[2]) - 1, int(match[3]))
    return found
