"""``preparation.json``: what was set, what was learned, and what became of the lines."""

from __future__ import annotations

import json
import os

from pydantic import ValidationError

from nmt_core.config import Config
from nmt_core.errors import InputError
from nmt_core.files import file_digest
from nmt_core.preparation.settings import PreparationConfig
from nmt_core.preparation.steps import Side
from nmt_core.preparation.tally import Dropped
from nmt_core.small_files import json_bytes, read_small

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
        record = Record.model_validate(json.loads(content))
    except (ValidationError, ValueError, RecursionError) as error:
        raise InputError(
            path, "not a preparation.json that this version understands; expected what 'nmt-core prepare' wrote"
        ) from error
    if record.version > _VERSION:
        raise InputError(path, f"written by a newer version of this program (format {record.version}); update hybridmt")
    return record


def read_record(path: str) -> Record:
    """Read it, and check that the models beside it are those it was written with. Raises InputError."""
    record = parse_record(read_small(path), path)
    for name, expected in record.models.items():
        if os.path.basename(name) != name or name in ("", "..", "."):
            raise InputError(path, f"the model {name[:80]!r} is not beside it; copy the whole folder")
        if file_digest(os.path.join(os.path.dirname(path), name)) != expected:
            raise InputError(
                os.path.join(os.path.dirname(path), name),
                f"not the model that {NAME} speaks of; copy the whole folder again",
            )
    return record
