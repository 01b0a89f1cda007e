"""Which shards of an output are finished: ``.OUT.hybridmt.journal`` beside OUT, with a line for each of them.

The first line is the identity of the job: all that its outputs depend on. Every line begins with the CRC-32 of its
rest. A line that was cut or damaged does not count, nor does what follows it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from isal.isal_zlib import crc32

from nmt_core.base.errors import ConfigError, InputError, unreadable

JOURNAL = ".hybridmt.journal"  # the ending of its name
AGAIN = "start again with --restart"
Counts = dict[str, float]
_FORMAT = 1
_HEX = 8  # digits of a CRC-32


class Shard(NamedTuple):
    """Consecutive lines of the input: the number of the first, from 1, how many, and their CRC-32."""

    first: int
    lines: int
    crc: int


class Content(NamedTuple):
    """What a shard added to an output: where it ends, in bytes, and its CRC-32."""

    end: int
    crc: int


class Entry(NamedTuple):
    """A finished shard, what it added to each output, and what was counted meanwhile."""

    shard: Shard
    contents: tuple[Content, ...]
    counts: Counts

    def line(self) -> bytes:
        """The line of the journal that ``read_journal`` reads."""
        first, lines, crc = self.shard
        outputs = [content._asdict() for content in self.contents]
        shard = {"first": first, "lines": lines}
        return _line({"shard": shard, "crc_in": crc, "outputs": outputs, "counts": self.counts})


@dataclass
class Journal:
    """What is undamaged of a journal: ``identity`` is None where there is none; where each entry ends, in bytes."""

    identity: dict[str, Any] | None = None
    entries: list[Entry] = field(default_factory=list)
    ends: list[int] = field(default_factory=list)


def read_journal(path: str) -> Journal:
    """The journal at ``path``, an empty one where there is none. Raises ConfigError for one of another version."""
    found, end = Journal(), 0
    try:
        content = Path(path).read_bytes()
    except FileNotFoundError:
        return found
    except OSError as error:
        raise unreadable(path, error) from error
    for line in content.splitlines(keepends=True):
        end += len(line)
        value = _checked(line)
        if value is None:
            break
        if found.identity is None:
            if value.get("journal") != _FORMAT:
                raise ConfigError(f"{path}: a job that another version has begun; {AGAIN}")
            found.identity = value["identity"]
            continue
        entry = _entry(value)
        if entry is None:
            break
        found.entries.append(entry)
        found.ends.append(end)
    return found


def first_line(identity: Mapping[str, Any]) -> bytes:
    """The line with which a journal begins."""
    return _line({"journal": _FORMAT, "identity": identity})


def check_identity(begun: Mapping[str, Any], now: Mapping[str, Any], *, path: str) -> None:
    """Raise ConfigError, naming the first difference, unless the job is the one that was begun.

    Raises InputError for a file that is not what it was then.
    """
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


def _line(value: Mapping[str, Any]) -> bytes:
    body = json.dumps(value).encode()
    return b"%0*x %b\n" % (_HEX, crc32(body), body)


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
