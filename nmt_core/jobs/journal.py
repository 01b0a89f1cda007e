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
from pydantic import TypeAdapter, ValidationError

from nmt_core.base.errors import ConfigError, InputError, unreadable
from nmt_core.jobs.workers import difference

JOURNAL = ".hybridmt.journal"  # the ending of its name
AGAIN = "start again with --restart"
Counts = dict[str, int | float]
FORMAT = 2
_HEX = 8  # digits of a CRC-32


class Shard(NamedTuple):
    """Consecutive lines of the input: the number of the first, from 1, how many, and the CRC-32 of their content."""

    first: int
    lines: int
    crc: int

    @classmethod
    def of(cls, first: int, content: bytes) -> Shard:
        r"""The shard whose lines, with ``\n`` between them, are ``content``."""
        return cls(first, content.count(b"\n") + 1, crc32(content))


class Content(NamedTuple):
    """What a shard added to an output: where it ends, in bytes, and its CRC-32."""

    end: int
    crc: int


class Entry(NamedTuple):
    """A finished shard, what it added to each output, and what was counted meanwhile."""

    shard: Shard
    outputs: tuple[Content, ...]
    counts: Counts


class _Head(NamedTuple):
    """The first line: the format, and the identity."""

    journal: int
    identity: dict[str, Any] | None = None


_HEAD, _ENTRY = TypeAdapter(_Head), TypeAdapter(Entry)


@dataclass
class Journal:
    """What is undamaged of a journal; ``ends`` says where its first line and each entry end, in bytes."""

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
        body = line[_HEX + 1 : -1]
        if line[-1:] != b"\n" or line[:_HEX] != b"%0*x" % (_HEX, crc32(body)):
            break
        try:
            if found.identity is not None:
                found.entries.append(_ENTRY.validate_json(body))
            else:
                head = _HEAD.validate_json(body)
                if head.journal != FORMAT:
                    raise ConfigError(f"{path}: a job that another version has begun; {AGAIN}")
                found.identity = head.identity
        except ValidationError:  # such as another beginning
            break
        end += len(line)
        found.ends.append(end)
    return found


def journal_line(value: Mapping[str, Any]) -> bytes:
    """A line that ``read_journal`` reads, behind the CRC-32 of its content."""
    body = json.dumps(value).encode()
    return b"%0*x %b\n" % (_HEX, crc32(body), body)


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
            problem = f"the job was begun with {name} {before}, not {after}; go on with that, or {AGAIN}"
            raise ConfigError(f"{path}: {problem}")
