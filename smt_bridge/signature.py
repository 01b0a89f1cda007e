"""What a column's numbers depend on, in one line as sacrebleu has it, and the record of them beside a file.

A *signature* is ``key:value`` fields between ``|``::

    feature:coverage|direction:forward|nmt:rnnsearch|model:c6a6575452b0|log:e|norm:none|tok:none|dtype:float32|version:0.1.0

================= ==========================================================================
``feature``       which feature made the column
``direction``     ``forward`` is p(target | source), ``reverse`` p(source | target), ``target`` without the source
``nmt``           architecture, of an ensemble several with ``+``
``model``         fingerprint of the model, language model or lexicon
``order``         ``right-to-left`` for a model that writes targets so; else absent
``backoff``       fingerprint of the unigrams that share out the probability of unknown words; else absent
``factors``       how many factors the model reads beside each source word; else absent
``log``           base of the logarithm; absent where the number is none
``norm``          ``none``, or what a sum was divided by (``words``: the words and the end)
``tok``           tokenisation: ``none`` takes the words of the list as they stand; else the fingerprint of the
                  preparation that cuts them into the subwords of the model
``dtype``         precision of the arithmetic
``device``        ``cpu`` or ``cuda``; ``cpu``: its instructions; ``gpu``: its name; ``torch``: the version
``sums``          CRC-32 of some sums as this processor and its libraries compute them (``nmt_core/numerics.py``)
``kernels``       version of the compiled kernels, in bfloat16 on a CPU; absent where PyTorch does all
``version``       of this software
================= ==========================================================================

A *sidecar* is a JSON file, ``FILE.json`` beside ``FILE``: input, options, counts, and the signature of every
column that was added. ``add-features`` and ``rescore-table`` write one.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from nmt_core.errors import ConfigError, InputError, unreadable
from nmt_core.files import file_digest, is_written_through, open_output
from nmt_core.messages import counted
from nmt_core.small_files import json_bytes, read_json
from nmt_core.version import VERSION

OF_THE_MACHINE = ("device", "cpu", "gpu", "sums", "kernels", "torch")
"""The fields that say where numbers were computed: on them the last digits depend."""

_SIDECAR_ENDING = ".json"
_DIGITS = 12


@dataclass(frozen=True)
class Signature:
    """The fields of a signature in their order; fields of unknown keys are kept."""

    fields: tuple[str, ...]

    @classmethod
    def parse(cls, text: str) -> Signature:
        """Take a signature apart; any text is one, if only of one field."""
        return cls(tuple(text.split("|")))

    @classmethod
    def of(cls, feature: str, **values: str) -> Signature:
        """The signature of a feature of this version that takes words as they stand."""
        given = {"feature": feature, **values}
        for key, value in (("tok", "none"), ("version", VERSION)):
            given.setdefault(key, value)
        return cls(tuple(f"{key}:{value}" for key, value in given.items()))

    def __str__(self) -> str:
        return "|".join(self.fields)

    def get(self, key: str) -> str | None:
        """The value of a field, None where it is absent."""
        return next((field.partition(":")[2] for field in self.fields if field.startswith(f"{key}:")), None)

    def with_field(self, key: str, value: str, *, first: bool = False) -> Signature:
        """The same with one field set: where it stands, or new at the end, before the version, or in front."""
        new = f"{key}:{value}"
        if self.get(key) is not None:
            return Signature(tuple(new if field.startswith(f"{key}:") else field for field in self.fields))
        if first:
            return Signature((new, *self.fields))
        place = next((i for i, field in enumerate(self.fields) if field.startswith("version:")), len(self.fields))
        return Signature((*self.fields[:place], new, *self.fields[place:]))

    def without(self, keys: Sequence[str]) -> Signature:
        """The same without the fields of these keys."""
        return Signature(tuple(field for field in self.fields if field.partition(":")[0] not in keys))

    @property
    def feature(self) -> str | None:
        """Which feature made the column."""
        return self.get("feature")

    @property
    def model(self) -> str | None:
        """Fingerprint of the model, language model or lexicon."""
        return self.get("model")

    @property
    def direction(self) -> str | None:
        """``forward``, ``reverse`` or ``target``."""
        return self.get("direction")

    @property
    def normalisation(self) -> str | None:
        """What a sum was divided by."""
        return self.get("norm")

    @property
    def tokenisation(self) -> str | None:
        """How text was cut into words."""
        return self.get("tok")

    @property
    def precision(self) -> str | None:
        """The type of the numbers that were computed with."""
        return self.get("dtype")

    @property
    def version(self) -> str | None:
        """The version of the software."""
        return self.get("version")


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


@dataclass(frozen=True)
class Sidecar:
    """What is known of the columns of a list or table.

    ``columns`` maps the name of a column to its signature, in the order of the columns; ``scores_before`` is
    the number of scores that a rescored table had before, None for a list.
    """

    input: str
    columns: Mapping[str, Signature]
    counts: Mapping[str, float] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)
    scores_before: int | None = None


def sidecar_path(path: str) -> str:
    """Where the sidecar of ``path`` lies."""
    return path + _SIDECAR_ENDING


def write_sidecar(path: str, sidecar: Sidecar) -> None:
    """Write the sidecar to ``path`` itself (see ``sidecar_path``)."""
    content = {
        "input": sidecar.input,
        "version": VERSION,
        "columns": {name: str(signature) for name, signature in sidecar.columns.items()},
        "counts": dict(sidecar.counts),
        "options": dict(sidecar.options),
    }
    with open_output(path) as stream:
        stream.write(json_bytes(content, indent=2))


def read_sidecar(path: str) -> Sidecar:
    """Read a sidecar of ``add-features`` or ``rescore-table``.

    Raises InputError for a file that cannot be read or is not one of the two.
    """
    content = read_json(path)
    try:
        return _of_table(content) if "scores_before" in content else _of_list(content)
    except (KeyError, TypeError, AttributeError, ValueError, OverflowError) as error:
        problem = f"is not a record of add-features or rescore-table ({error!r:.80}); remove it or write it again"
        raise InputError(path, problem) from error


def find_sidecar(path: str) -> Sidecar | None:
    """The record beside a list or table, None where there is none; raises InputError as ``read_sidecar``."""
    beside = sidecar_path(path)
    return read_sidecar(beside) if path != "-" and os.path.isfile(beside) else None


def new_sidecar(output: str) -> str | None:
    """Where the record of ``output`` will lie; None for what no file can lie beside: standard output, a device.

    Raises ConfigError where something else is there.
    """
    if output == "-" or is_written_through(output):
        return None
    check_record(sidecar_path(output))
    return sidecar_path(output)


def check_record(path: str) -> None:
    """Raise ConfigError where ``path``, which is about to be written as a record, is something else."""
    if not os.path.exists(path):
        return
    try:
        read_sidecar(path)
    except InputError as error:
        problem = "is there already and is no record of add-features or rescore-table"
        raise ConfigError(f"{path}: {problem}; move it away, or choose another --output") from error


def check_scores(content: Mapping[str, Any], path: str, *, table: str, scores: int) -> None:
    """Raise InputError where the record ``content`` of ``path`` tells of other scores than the table has."""
    expected = int(content["scores_before"]) + len(content["added"])
    if expected != scores:
        problem = f"tells of {counted(expected, 'score')}, but {table} has {scores}: it is not the record of that table"
        raise InputError(path, problem)


def _of_list(content: Mapping[str, Any]) -> Sidecar:
    columns = {str(name): Signature.parse(text) for name, text in content["columns"].items()}
    return Sidecar(content["input"], columns, content["counts"], content["options"])


def _of_table(content: Mapping[str, Any]) -> Sidecar:
    """A table names its scorers; p(source|target) is the reverse one's, everything else the direct one's."""
    signatures, options = content["signatures"], content["options"]
    columns = {}
    for name in content["added"]:
        reverse = "reverse_scorer" in signatures and name.startswith("p(source")
        text = signatures["reverse_scorer" if reverse else "scorer"]
        direction = "reverse" if reverse else "forward"
        columns[str(name)] = Signature.parse(text).with_field("direction", direction, first=True)
    return Sidecar(options["input"], columns, content.get("counts", {}), options, int(content["scores_before"]))
