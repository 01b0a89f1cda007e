"""``preparation.json``: what was set, what was learned, and how many lines were dropped, why, and where first."""

from __future__ import annotations

import json
from collections.abc import Sequence

from pydantic import ValidationError

from nmt_core.base.errors import InputError
from nmt_core.config import Config
from nmt_core.files.reading import json_bytes, read_small
from nmt_core.preparation.filters import JUNK, Reason
from nmt_core.preparation.settings import PreparationConfig
from nmt_core.preparation.steps import Side


class Dropped(Config):
    """One reason; ``side`` is None where it concerns both."""

    reason: str
    side: Side | None
    lines: int
    first_line: int


class DropCounts:
    """Lines read and dropped."""

    def __init__(self) -> None:
        self.read = 0
        self._dropped: dict[Reason, tuple[int, int]] = {}

    @property
    def kept(self) -> int:
        """Lines that are left."""
        return self.read - sum(lines for lines, _ in self._dropped.values())

    def drop(self, reason: Reason, number: int, lines: int = 1) -> None:
        """Count ``lines`` more, of which the first is ``number``."""
        count, first = self._dropped.get(reason, (0, number))
        self._dropped[reason] = (count + lines, min(first, number))

    def add(self, other: DropCounts) -> None:
        """Count what the other counted."""
        self.read += other.read
        for reason, (lines, first) in other._dropped.items():
            self.drop(reason, first, lines)

    def dropped(self) -> list[Dropped]:
        """The reasons, the most frequent first."""
        rows = [
            Dropped(reason=reason.text, side=reason.side, lines=lines, first_line=first)
            for reason, (lines, first) in self._dropped.items()
        ]
        return sorted(rows, key=lambda row: (-row.lines, row.reason, row.side or ""))

    def junk(self, side: Side) -> tuple[int, int]:
        """How many lines of a side are no text, and the first one's number (0 if there is none)."""
        found = [counts for reason, counts in self._dropped.items() if reason.side == side and reason.text in JUNK]
        return sum(lines for lines, _ in found), min((first for _, first in found), default=0)


def table(read: int, kept: int, dropped: list[Dropped]) -> str:
    """The account for people."""
    rows = [("dropped", "lines", "%", "first")]
    rows += [(_name(row), f"{row.lines:,}", _share(row.lines, read), f"{row.first_line:,}") for row in dropped]
    rows += [("kept", f"{kept:,}", _share(kept, read), ""), ("read", f"{read:,}", "", "")]
    widths = [max(len(row[column]) for row in rows) for column in range(4)]
    return "\n".join(_aligned(row, widths) for row in rows)


def _aligned(row: Sequence[str], widths: Sequence[int]) -> str:
    numbers = (f"{cell:>{width}}" for cell, width in zip(row[1:], widths[1:], strict=True))
    return "  ".join([f"{row[0]:<{widths[0]}}", *numbers]).rstrip()


def _name(row: Dropped) -> str:
    return f"{row.reason} ({row.side})" if row.side else row.reason


def _share(lines: int, read: int) -> str:
    return f"{100 * lines / read:.2f}" if read else "-"


NAME = "preparation.json"
_VERSION = 1


class Record(Config):
    """``models`` are files beside the record with their SHA-256, ``outputs`` the files that were written."""

    version: int = _VERSION
    settings: PreparationConfig
    models: dict[str, str]
    inputs: dict[Side, str]
    outputs: dict[Side, str]
    read: int
    kept: int
    dropped: list[Dropped]


def render_record(record: Record) -> bytes:
    """The record as JSON."""
    return json_bytes(record.to_mapping(), indent=2)


def parse_record(content: bytes, path: str) -> Record:
    """The record of a ``preparation.json``. Raises InputError, naming ``path``, for anything else."""
    try:
        found = json.loads(content)
        found["settings"].pop("shuffle", None)  # of earlier versions
        record = Record.model_validate(found)
    except (ValidationError, ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        raise InputError(
            path, "not a preparation.json that this version understands; expected what 'nmt-core prepare' wrote"
        ) from error
    if record.version > _VERSION:
        raise InputError(path, f"written by a newer version of this program (format {record.version}); update hybridmt")
    return record


def read_record(path: str) -> Record:
    """Read it; the models beside it are not looked at. Raises InputError."""
    return parse_record(read_small(path), path)
