"""Metadata of a list or table, in the JSON file ``FILE.json`` next to ``FILE``.

They have the input, options, counts, and the signature of every added column. Their ``file`` is the identity of the
bytes that they describe: length and CRC-32. Other programs, and commands that write no metadata, can replace FILE and
leave an older FILE.json there. Its identity does not fit then, and every command that reads it says so and ends.

A *signature* says in one line what a column's numbers depend on, as sacrebleu has it: ``key:value`` fields between
``|``; fields of unknown keys are kept::

    feature:coverage|direction:forward|nmt:rnnsearch|model:c6a6575452b0|log:e|norm:none|tok:none|dtype:float32|version:0.1.0

================= ==========================================================================
``feature``       which feature made the column
``direction``     ``forward`` is p(target | source), ``reverse`` p(source | target), ``target`` without the source
``nmt``           architecture, of an ensemble several with ``+``
``model``         fingerprint of the model, language model or lexicon
``order``         ``right-to-left`` for a model that writes targets so; else absent
``factors``       how many factors the model reads beside each source word; else absent
``log``           base of the logarithm; absent where the number is none
``norm``          ``none``, or what a sum was divided by (``words``: the words and the end)
``tok``           tokenisation: ``none`` takes the words of the list as they stand; else the fingerprint of the
                  preparation that cuts them into the subwords of the model
``dtype``         precision of the arithmetic
``device``        ``cpu`` or ``cuda``; ``cpu``: its instructions; ``gpu``: its name; ``torch``: the version
``sums``          CRC-32 of some sums as this processor and its libraries compute them (``nmt_core/device.py``)
``kernels``       version of the compiled kernels, in bfloat16 on a CPU; absent where PyTorch does all
``version``       of this software
================= ==========================================================================
"""

from __future__ import annotations

import functools
import os
from collections.abc import Mapping, Sequence
from typing import Any

from isal.isal_zlib import crc32
from pydantic import BaseModel, InstanceOf, ValidationError

from nmt_core.base.errors import ConfigError, InputError, unreadable
from nmt_core.files import PARTIAL, beside, file_digest, is_written_through, open_output
from nmt_core.files.reading import json_bytes, read_json
from nmt_core.version import VERSION

OF_THE_MACHINE = ("device", "cpu", "gpu", "sums", "kernels", "torch")
"""The fields that say where numbers were computed: on them the last digits depend."""

_DIGITS = 12


def signature_of(feature: str, **values: str) -> str:
    """The signature of a feature of this version that takes words as they stand.

    >>> signature_of("mine", log="e", version="1")
    'feature:mine|log:e|version:1|tok:none'
    """
    given = {"feature": feature, **values}
    for key, value in (("tok", "none"), ("version", VERSION)):
        given.setdefault(key, value)
    return "|".join(f"{key}:{value}" for key, value in given.items())


def field_of(signature: str, key: str) -> str | None:
    """The value of a field, None where it is absent."""
    return next((one.partition(":")[2] for one in signature.split("|") if one.startswith(f"{key}:")), None)


def with_field(signature: str, key: str, value: str) -> str:
    """The same with one field set: where it stands, or new at the end, before the version."""
    new, fields = f"{key}:{value}", signature.split("|")
    if field_of(signature, key) is not None:
        return "|".join(new if one.startswith(f"{key}:") else one for one in fields)
    place = next((i for i, one in enumerate(fields) if one.startswith("version:")), len(fields))
    return "|".join([*fields[:place], new, *fields[place:]])


def without_fields(signature: str, keys: Sequence[str]) -> str:
    """The same without the fields of these keys."""
    return "|".join(one for one in signature.split("|") if one.partition(":")[0] not in keys)


def file_fingerprint(path: str) -> str:
    """Twelve digits that change with any bit of a file; a gibibyte takes about a second, the first time."""
    try:
        found = os.stat(path)
    except OSError as error:
        raise unreadable(path, error) from error
    return _fingerprint(path, (found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns))


@functools.lru_cache(maxsize=64)
def _fingerprint(path: str, _state: tuple[int, ...]) -> str:
    return file_digest(path)[:_DIGITS]


_ENDING = ".json"
_BLOCK = 1 << 20  # bytes read at once


class Metadata(BaseModel, frozen=True):
    """What is known of a list or table: the content of its file, where what is None is left out.

    ``columns`` maps the name of a column to its signature, in the order of the columns. Of a rescored table alone,
    ``scores_before`` is the number of scores that it had before, ``rules`` whether it is of rules, ``signatures`` those
    of its scorers by the name of their option, and ``filtered`` what was left out of it later. ``file`` is the identity
    of the bytes that are described.
    """

    input: InstanceOf[str]
    version: str = VERSION
    columns: dict[str, InstanceOf[str]]
    counts: Mapping[str, int | float]
    options: dict[str, Any]
    scores_before: int | None = None
    rules: bool | None = None
    signatures: dict[str, str] | None = None
    filtered: list[Any] | None = None
    file: dict[str, Any] | None = None


def metadata_path(path: str) -> str:
    """Where the metadata of ``path`` are."""
    return path + _ENDING


def find_metadata(path: str) -> Metadata | None:
    """The metadata of a list or table, None where there are none.

    Raises InputError as ``read_metadata``, and where they describe other bytes than the file has.
    """
    beside = metadata_path(path)
    if not (os.path.isfile(path) and os.path.isfile(beside)):
        return None
    found = read_metadata(beside)
    length = (found.file or {}).get("bytes")
    if length != os.path.getsize(path) or found.file != identity(path):  # mostly the length tells
        raise InputError(beside, f"describes other content than {path} has; remove it, or make both again")
    return found


def known_columns(path: str) -> Mapping[str, str]:
    """The signatures of the columns that the metadata of a list name; raises as ``find_metadata``."""
    found = find_metadata(path)
    return found.columns if found else {}


def read_metadata(path: str) -> Metadata:
    """Read ``FILE.json`` itself. Raises InputError where it cannot be read or is something else."""
    try:
        return Metadata.model_validate(read_json(path))
    except ValidationError as error:
        wrong = f"{first_problem(error):.80}"
        problem = f"is not metadata of add-features or rescore-table ({wrong}); remove it or write it again"
        raise InputError(path, problem) from error


def first_problem(error: ValidationError) -> str:
    """What is wrong first, and where."""
    first = error.errors(include_url=False)[0]
    return f"{'.'.join(map(str, first['loc']))}: {first['msg']}"


def new_metadata(output: str) -> str | None:
    """Where the metadata of ``output`` will be; None for what has none: standard output, a device.

    Raises ConfigError where something else is there.
    """
    if output == "-" or is_written_through(output):
        return None
    path = metadata_path(output)
    try:
        if os.path.exists(path):
            read_metadata(path)
    except InputError as error:
        problem = "is there already and is no metadata of add-features or rescore-table"
        raise ConfigError(f"{path}: {problem}; move it away, or choose another --output") from error
    return path


def write_metadata(output: str, metadata: Metadata) -> None:
    """Write the metadata of ``output``, which is complete under its temporary name, with its identity.

    Until it gets its name, they are metadata of other content, which nobody uses.
    """
    described = metadata.model_copy(update={"file": identity(beside(output, PARTIAL))})
    with open_output(metadata_path(output)) as stream:
        stream.write(json_bytes(described.model_dump(exclude_none=True), indent=2))


def identity(path: str) -> dict[str, Any]:
    """Length and CRC-32 of a file's bytes as they are on the disk; 0.3 s a GiB that is in memory."""
    crc = size = 0
    try:
        with open(path, "rb") as stream:
            while block := stream.read(_BLOCK):
                crc, size = crc32(block, crc), size + len(block)
    except OSError as error:
        raise unreadable(path, error) from error
    return {"bytes": size, "crc32": f"{crc:08x}"}
