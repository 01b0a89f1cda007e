"""Which shards of an output are finished: ``.OUT.hybridmt.journal`` beside OUT, with a line for each of them.

The first line is the identity of the job: all that its outputs depend on. Every line begins with the CRC-32 of its
rest. A line that was cut or damaged does not count, nor does what follows it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from isal.isal_zlib import crc32
from pydantic import TypeAdapter, ValidationError

from nmt_core.base.errors import ConfigError, InputError, unreadable
from nmt_core.jobs.workers import difference

JOURNAL = ".hybridmt.journal"  # the ending of its name
AGAIN = "start again with --restart"
Counts = dict[str, int | float]
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


_IDENTITY, _ENTRY = TypeAdapter(dict[str, Any]), TypeAdapter(Entry)


def read_journal(path: str, identity: Mapping[str, Any]) -> list[tuple[Entry, int]]:
    """The undamaged entries of the journal at ``path``, each with the place in bytes where its line ends.

    Without a journal there are none. Raises as ``check_identity`` where they are of a job with another ``identity``.
    """
    begun: dict[str, Any] | None = None
    entries: list[tuple[Entry, int]] = []
    end = 0
    try:
        content = Path(path).read_bytes()
    except FileNotFoundError:
        return entries
    except OSError as error:
        raise unreadable(path, error) from error
    for line in content.splitlines(keepends=True):
        body = line[_HEX + 1 : -1]
        if line[-1:] != b"\n" or line[:_HEX] != b"%0*x" % (_HEX, crc32(body)):
            break
        end += len(line)
        try:
            if begun is None:
                begun = _IDENTITY.validate_json(body)
            else:
                entries.append((_ENTRY.validate_json(body), end))
        except ValidationError:  # such as another beginning
            break
    if entries:
        check_identity(begun or {}, identity, path=path)
    return entries


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
