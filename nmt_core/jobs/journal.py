"""Which shards of an output are finished: ``.OUT.hybridmt.journal`` beside OUT, with a line for each of them.

The first line is the identity of the job: all that its outputs depend on. Every line begins with the CRC-32 of its
rest. A line that was cut or damaged does not count, nor does what follows it.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Mapping
from typing import Any, NamedTuple

from isal.isal_zlib import crc32

from nmt_core.base.errors import ConfigError, InputError, unreadable
from nmt_core.jobs.shards import Counts, Shard

ENDING = ".hybridmt.journal"
AGAIN = "start again with --restart"
_FORMAT = 1
_HEX = 8  # digits of a CRC-32


def journal_path(output: str) -> str:
    """Where the journal of an output is, under a name that no file of a user has."""
    folder, name = os.path.split(os.path.realpath(output))
    return os.path.join(folder, f".{name}{ENDING}")


class Content(NamedTuple):
    """What a shard added to an output: where it ends, in bytes, and its CRC-32."""

    end: int
    crc: int


class Entry(NamedTuple):
    """A finished shard, what it added to each output, and what was counted meanwhile."""

    shard: Shard
    contents: tuple[Content, ...]
    counts: Counts


class Journal:
    """The journal at ``path``; only its holder, who has locked the output, may write to it.

    ``entries`` are those that are undamaged; ``identity`` is None where there is none. Raises ConfigError, unless it is
    read ``to_restart``, for a journal of another version.
    """

    def __init__(self, path: str, *, to_restart: bool = False) -> None:
        self._path = path
        try:
            self._stream = open(path, "a+b")  # noqa: SIM115  # closed by ``close`` and ``remove``
        except OSError as error:
            raise unreadable(path, error) from error
        self._stream.seek(0)
        self.identity: dict[str, Any] | None = None
        self.entries: list[Entry] = []
        self._ends: list[int] = []  # of the first line, and of each entry's
        if not to_restart:
            with contextlib.ExitStack() as stack:
                stack.callback(self._stream.close)
                self._read()
                stack.pop_all()

    def _read(self) -> None:
        for line in self._stream:
            value = _checked(line)
            if value is None:
                return
            if not self._ends:
                if value.get("journal") != _FORMAT:
                    raise ConfigError(f"{self._path}: a job that another version has begun; {AGAIN}")
                self.identity = value["identity"]
            else:
                entry = _entry(value)
                if entry is None:
                    return
                self.entries.append(entry)
            self._ends.append((self._ends[-1] if self._ends else 0) + len(line))

    def begin(self, identity: Mapping[str, Any]) -> None:
        """Forget what is there, and begin with this identity."""
        self.entries, self._ends = [], []
        self._stream.truncate(0)
        self._write({"journal": _FORMAT, "identity": dict(identity)})

    def cut(self, entries: int) -> None:
        """Keep so many entries."""
        del self.entries[entries:], self._ends[entries + 1 :]
        self._stream.truncate(self._ends[-1] if self._ends else 0)

    def append(self, entry: Entry) -> None:
        """Add a finished shard."""
        self.entries.append(entry)
        outputs = [content._asdict() for content in entry.contents]
        shard = {"first": entry.shard.first, "lines": entry.shard.lines}
        self._write({"shard": shard, "crc_in": entry.shard.crc, "outputs": outputs, "counts": entry.counts})

    def sync(self) -> None:
        """Have what was added survive a power cut."""
        os.fsync(self._stream.fileno())

    def close(self) -> None:
        """Keep it for the next program."""
        self._stream.close()

    def remove(self) -> None:
        """End of the job."""
        self._stream.close()
        os.unlink(self._path)

    def _write(self, value: Mapping[str, Any]) -> None:
        body = json.dumps(value).encode()
        line = b"%0*x %b\n" % (_HEX, crc32(body), body)
        self._stream.write(line)
        self._stream.flush()
        self._ends.append((self._ends[-1] if self._ends else 0) + len(line))


def check_identity(begun: Mapping[str, Any], now: Mapping[str, Any], *, path: str) -> None:
    """Raise ConfigError, naming the first difference, unless the job is the one that was begun.

    Raises InputError for a file that is not what it was then.
    """
    now = json.loads(json.dumps(now))
    for file, digest in now.get("sha256", {}).items():
        if begun.get("sha256", {}).get(file, digest) != digest:
            raise InputError(file, f"changed since the job was begun; put the old file back, or {AGAIN}")
    for name, value in now.items():
        if begun.get(name) != value:
            before, after = difference(begun.get(name), value)
            raise ConfigError(
                f"{path}: the job was begun with {name} {before}, not {after}; go on with that, or {AGAIN}"
            )


def difference(before: Any, now: Any) -> tuple[str, str]:
    """The first difference of two values, in mappings that of a key, as text."""
    if isinstance(before, dict) and isinstance(now, dict):
        for key in now:
            if before.get(key) != now[key]:
                return f"{key}={before.get(key)!r}", f"{now[key]!r}"
    return repr(before), repr(now)


def _checked(line: bytes) -> dict[str, Any] | None:
    """The value of a line; None for one that was cut or damaged."""
    body = line[_HEX + 1 : -1]
    if line[-1:] != b"\n" or line[:_HEX] != b"%0*x" % (_HEX, crc32(body)):
        return None
    value = json.loads(body)
    return value if isinstance(value, dict) else None


def _entry(value: Mapping[str, Any]) -> Entry | None:
    """The entry of a line; None for one that no program of this version wrote."""
    try:
        shard = Shard(value["shard"]["first"], value["shard"]["lines"], value["crc_in"])
        return Entry(shard, tuple(Content(**content) for content in value["outputs"]), value["counts"])
    except (KeyError, TypeError):
        return None
