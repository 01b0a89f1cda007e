"""What a column's numbers depend on, in one line as sacrebleu has it.

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
``sums``          CRC-32 of some sums as this processor and its libraries compute them (``nmt_core/device.py``)
``kernels``       version of the compiled kernels, in bfloat16 on a CPU; absent where PyTorch does all
``version``       of this software
================= ==========================================================================

Signatures are in the metadata of a list or table (``metadata.py``).
"""

from __future__ import annotations

import functools
import os
from collections.abc import Sequence
from dataclasses import dataclass

from nmt_core.base.errors import unreadable
from nmt_core.files import file_digest
from nmt_core.version import VERSION

OF_THE_MACHINE = ("device", "cpu", "gpu", "sums", "kernels", "torch")
"""The fields that say where numbers were computed: on them the last digits depend."""

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
