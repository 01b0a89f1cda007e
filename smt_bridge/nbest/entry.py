r"""One hypothesis of an n-best list, whatever wrote it, and how it is written.

An entry has its text when it is written. One that was read keeps its line: unchanged it is written byte for byte, and
only new features and a new total change it. One that was made has a line in the style of Moses.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import isfinite
from typing import NamedTuple

from smt_bridge.moses_lines import BLANKS, SEPARATOR, text_of

UNLABELLED = "Unlabelled0"
LARGEST = 3.4028234663852886e38  # of single precision, in which Moses' tools read scores and weights
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9]*")


class OriginalLine(NamedTuple):
    r"""The line of an entry as it was read.

    ``fields`` stood between ``|||``; ``feature_place`` and ``total_place`` are indices into them, -1 where absent.
    ``features`` is the number of features of the line and ``total`` its total. ``ending`` is ``b"\r"`` for lines of
    Windows.
    """

    fields: tuple[bytes, ...]
    feature_place: int = -1
    total_place: int = -1
    features: int = 0
    total: float | None = None
    ending: bytes = b""


class NbestEntry(NamedTuple):
    """One hypothesis: its words without outer blanks, its features in their order, its total (None: there is none).

    ``line`` is the number of its line. ``original`` is None for an entry that no line was read for.
    """

    sentence: int
    hypothesis: bytes
    features: dict[str, tuple[float, ...]]
    total: float | None
    line: int
    original: OriginalLine | None = None

    @property
    def text(self) -> str:
        """The hypothesis as text: words with single spaces between, bytes that are not UTF-8 replaced."""
        return text_of(self.hypothesis)


class NbestList(NamedTuple):
    """The hypotheses of one source sentence, in the order of the file."""

    sentence: int
    entries: list[NbestEntry]


def runs_of_sentence(entries: Iterable[NbestEntry]) -> Iterator[NbestList]:
    """Put neighbouring entries of the same id together; an id may come again later in a file that is not grouped."""
    current: NbestList | None = None
    for entry in entries:
        if current is None or entry.sentence != current.sentence:
            if current is not None:
                yield current
            current = NbestList(entry.sentence, [])
        current.entries.append(entry)
    if current is not None:
        yield current


def with_columns(entry: NbestEntry, names: Sequence[str], values: Sequence[float]) -> NbestEntry:
    """The entry with one number for each new name, rounded as lists have it."""
    new = {name: (rounded(value),) for name, value in zip(names, values, strict=True)}
    return entry._replace(features=entry.features | new)


def format_number(value: float) -> str:
    """Seven significant digits: what the single precision of Moses' readers holds."""
    return f"{value + 0.0:.7g}"


def rounded(value: float) -> float:
    """The number that a reader of the list will see."""
    return float(format_number(value))


def format_entry(entry: NbestEntry) -> bytes:
    r"""The line of an entry without ``\n``."""
    original = entry.original
    if original is None:
        fields = [b"%d" % entry.sentence, entry.hypothesis]
        fields += [_columns(entry.features.items())] if entry.features else []
        fields += [] if entry.total is None else [format_number(entry.total).encode()]
        return b" ||| ".join(fields)
    new = list(entry.features.items())[original.features :]
    if not new and entry.total == original.total:
        return SEPARATOR.join(original.fields) + original.ending
    return SEPARATOR.join(_changed_fields(entry, original, new)) + original.ending


def _columns(features: Iterable[tuple[str, tuple[float, ...]]]) -> bytes:
    shown = " ".join([f"{name}= {' '.join(map(format_number, values))}" for name, values in features])
    return shown.encode("utf-8", "surrogateescape")


def _changed_fields(
    entry: NbestEntry, original: OriginalLine, new: Sequence[tuple[str, tuple[float, ...]]]
) -> list[bytes]:
    """The fields with new features behind the others, and the total where it is another one."""
    fields, place, total_place = list(original.fields), original.feature_place, original.total_place
    if entry.total is not None and entry.total != original.total:
        number = b" " + format_number(entry.total).encode()
        if total_place >= 0:
            behind = fields[total_place].lstrip(BLANKS).partition(b" ")[1:]  # a blank, or more numbers
            fields[total_place] = number + b"".join(behind)
        else:
            total_place = len(fields)
            fields[-1] = _with_blank(fields[-1])
            fields.append(number)
    if new and place >= 0:
        fields[place] = _extended(fields[place], _columns(new), UNLABELLED in entry.features)
    elif new and total_place >= 0:
        fields.insert(total_place, b" " + _columns(new) + b" ")
    elif new:
        fields[-1] = _with_blank(fields[-1])
        fields.append(b" " + _columns(new))
    return fields


def _with_blank(field: bytes) -> bytes:
    return field if field.endswith(b" ") else field + b" "


def _extended(field: bytes, added: bytes, has_unlabelled: bool) -> bytes:
    """A field of features with more of them; bare numbers get a label, or nobody could read the line again."""
    content = field.rstrip(BLANKS)
    tail = field[len(content) :] if content else b" "
    label = UNLABELLED.encode() + b"="
    if has_unlabelled and not content.lstrip(BLANKS).startswith(label):
        content = b" " + label + b" " + content.lstrip(BLANKS)
    return content + b" " + added + tail


def check_new_names(names: Sequence[str]) -> None:
    """Raise ValueError, saying why, for names that Moses' tools would misread or that are given twice."""
    for name in names:
        if not _NAME.fullmatch(name):
            raise ValueError(
                f"feature name '{name}' must be letters and digits, beginning with a letter"
                " (with '_' Moses' tools take it for a sparse feature)"
            )
    twice = sorted({name for name in names if list(names).count(name) > 1})
    if twice:
        raise ValueError(f"feature name '{twice[0]}' is given twice; name the columns apart")


def checked_features(features: Mapping[str, Sequence[float]]) -> None:
    """Raise ValueError for a feature without a value, or with one that is not finite in single precision."""
    for name, numbers in features.items():
        if not numbers:
            raise ValueError(f"feature {name} has no value")
        for number in numbers:
            if not is_usable(number):
                raise ValueError(f"feature {name} {why_unusable(number)}")


def is_usable(number: float) -> bool:
    """Whether Moses' tools, which read single precision, can hold ``number``; nan and inf they cannot use."""
    return -LARGEST <= number <= LARGEST


def why_unusable(number: float) -> str:
    """What a message says of a number that is not usable: ``is 1e+39, but ...``."""
    if isfinite(number):
        return f"is {number:g}, but Moses' tools read numbers up to {LARGEST:.2g} only"
    return "is not a finite number; tuners and decoders cannot use nan or inf"
