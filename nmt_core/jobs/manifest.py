"""What a long job is: its input, options and models, and the shards it is cut into.

The manifest lies in ``OUT.parts/manifest.json`` while the job lasts. A job that is started again must
have the same description, and each shard the same bytes, or the parts would not fit together. The shards are in it
where somebody has to know them all before the work: who does some of them only, or wants to know how many there are.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Generic, NamedTuple, TypeVar

from isal.isal_zlib import crc32

from nmt_core.errors import ConfigError, InputError
from nmt_core.files import open_replacement
from nmt_core.messages import counted
from nmt_core.newlines import count_newlines
from nmt_core.small_files import read_json
from nmt_core.whole_numbers import whole_number

FORMAT = 3
Item = TypeVar("Item")


class Shard(NamedTuple):
    """Consecutive lines of the input: the number of the first, from 1, how many, and their CRC-32."""

    first: int
    lines: int
    crc: int


class Manifest(NamedTuple):
    """``description`` is whatever the output depends on, by name; without ``shards`` they are cut during the work."""

    description: dict[str, Any]
    shards: list[Shard] | None

    @property
    def fingerprint(self) -> str:
        """Tells parts of this job from those of any other, of the same shards."""
        return hashlib.sha256(json.dumps(self.description, sort_keys=True).encode()).hexdigest()


class Input(NamedTuple, Generic[Item]):
    """Where the work comes from: ``read`` yields the shards' items in order, ``shard_of`` says which lines one is.

    ``share`` says how much of the input has been read; where it is not known, the input is read beforehand, too, so
    that progress can be shown.
    """

    path: str
    read: Callable[[], Iterator[Item]]
    shard_of: Callable[[Item], Shard]
    share: Callable[[], float] | None = None


def shard_of(first: int, content: bytes) -> Shard:
    r"""The shard whose lines, with ``\n`` between them, are ``content``."""
    return Shard(first, count_newlines(content) + 1, crc32(content))


def write_manifest(path: str, manifest: Manifest) -> None:
    """Write it, atomically."""
    content = {"format": FORMAT, "description": manifest.description, "shards": manifest.shards}
    with open_replacement(path) as stream:
        stream.write(json.dumps(content, indent=1).encode() + b"\n")


def read_manifest(path: str) -> Manifest | None:
    """The manifest, or None where there is none. Raises InputError for a file that is something else."""
    if not os.path.exists(path):
        return None
    content = read_json(path, remedy=ANEW)
    try:
        if content["format"] != FORMAT:
            raise InputError(path, f"was written by another version of this program; {ANEW}")
        description, listed = content["description"], content["shards"]
        shards = None if listed is None else [Shard(*shard) for shard in listed]
    except (KeyError, TypeError) as error:
        raise InputError(path, f"is not a manifest ({error!r:.80}); {ANEW}") from error
    if not isinstance(description, dict) or not all(
        type(number) is int and number >= 0 for shard in shards or () for number in shard
    ):
        raise InputError(path, f"is not a manifest; {ANEW}")
    return Manifest(description, shards)


def check_same(manifest: Manifest, description: Mapping[str, Any], *, path: str) -> None:
    """Raise ConfigError, naming the first difference, unless the job is the one that was begun."""
    begun = json.loads(json.dumps(manifest.description))
    for name, value in json.loads(json.dumps(dict(description))).items():
        if begun.get(name) != value:
            before, now = difference(begun.get(name), value)
            raise ConfigError(f"{path}: the job was begun with {name} {before}, not {now}; go on with that, or {ANEW}")


def check_files(manifest: Manifest, hashes: Mapping[str, str]) -> None:
    """Raise InputError for a file that is not what it was when the job was begun."""
    begun = manifest.description.get("sha256", {})
    for path, digest in hashes.items():
        if path in begun and begun[path] != digest:
            raise InputError(path, f"changed since the job was begun; put the old file back, or {ANEW}")


def check_shards(expected: Shard, found: Shard | None, *, path: str) -> None:
    """Raise InputError unless the input still has the bytes it had."""
    if found != expected:
        raise InputError(
            path, f"changed since the job was begun; put the old file back, or {ANEW}", line=expected.first
        )


def parse_range(text: str, shards: int) -> range:
    """``A-B`` or ``A``, counted from 1, as places in the list. Raises ConfigError."""
    first, dash, last = text.partition("-")
    last = last if dash else first
    begin, end = whole_number(first) or 0, whole_number(last) or 0
    if not 1 <= begin <= end <= shards:
        there = counted(shards, "shard")
        raise ConfigError(f"--shards {text}: the input has {there}; expected A-B with numbers from 1 to {shards}")
    return range(begin - 1, end)


ANEW = "begin anew with --restart"


def difference(before: Any, now: Any) -> tuple[str, str]:
    """The first difference of two values, in mappings that of a key, as text."""
    if isinstance(before, dict) and isinstance(now, dict):
        for key in now:
            if before.get(key) != now[key]:
                return f"{key}={before.get(key)!r}", f"{now[key]!r}"
    return repr(before), repr(now)
