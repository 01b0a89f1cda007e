r"""One hypothesis of an n-best list, whatever wrote it, and how it is written back.

An entry keeps the fields of its line as they were, so that unknown ones are written back byte for byte.
Lists that are not in the style of Moses are read into the same fields (``nbest_formats``); lines of JSON
stay lines of JSON.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import isfinite
from typing import NamedTuple

from smt_bridge.nbest.json_members import with_json_features, with_json_total

SEPARATOR = b"|||"
UNLABELLED = "Unlabelled0"
LARGEST = 3.4028234663852886e38  # of single precision, in which Moses' tools read scores and weights
BLANKS = b" \t"
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9]*")


class NbestEntry(NamedTuple):
    r"""One hypothesis: what was understood of its line, and the line's fields as they stood.

    ``hypothesis`` is without outer blanks; ``features`` maps a name to its values in the order of
    the line; ``total`` is None where the line has none. ``feature_place`` and ``total_place`` are
    indices into ``fields``, -1 where absent; ``ending`` is ``b"\r"`` for lines of Windows. With ``json``
    the only field is a JSON object.
    """

    sentence: int
    hypothesis: bytes
    features: dict[str, tuple[float, ...]]
    total: float | None
    line: int
    fields: tuple[bytes, ...]
    feature_place: int
    total_place: int
    ending: bytes = b""
    json: bool = False

    @property
    def text(self) -> str:
        """The hypothesis as text: words with single spaces between, bytes that are not UTF-8 replaced."""
        return words_as_text(self.hypothesis)


class NbestList(NamedTuple):
    """The hypotheses of one source sentence, in the order of the file."""

    sentence: int
    entries: list[NbestEntry]


def words_as_text(line: bytes) -> str:
    """Decode tokenised text: split at space and tab only, one space between words, bad bytes replaced."""
    words = line.replace(b"\t", b" ").split(b" ")
    return b" ".join(word for word in words if word).decode("utf-8", "replace")


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


def format_entry(entry: NbestEntry) -> bytes:
    r"""Return the line of an entry without ``\n``; byte for byte the line that was read."""
    return SEPARATOR.join(entry.fields) + entry.ending


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


def with_features(entry: NbestEntry, names: Sequence[str], values: Sequence[float]) -> NbestEntry:
    """Append one column per name to the feature field; everything else of the line stays as it is."""
    if entry.json:
        return _with_json_features(entry, names, values)
    added = b" ".join(f"{name}= {format_number(value)}".encode() for name, value in zip(names, values, strict=True))
    fields = list(entry.fields)
    place, total_place = entry.feature_place, entry.total_place
    if place >= 0:
        fields[place] = _append(fields[place], added, unlabelled=_has_bare_numbers(entry))
    else:
        place = total_place if total_place >= 0 else len(fields)
        fields.insert(place, b" " + added + (b" " if total_place >= 0 else b""))
        total_place = total_place + 1 if total_place >= 0 else -1
        if place == len(fields) - 1 and not fields[place - 1].endswith(b" "):
            fields[place - 1] += b" "
    new = {name: (float(value),) for name, value in zip(names, values, strict=True)}
    return entry._replace(
        features={**entry.features, **new}, fields=tuple(fields), feature_place=place, total_place=total_place
    )


def with_total(entry: NbestEntry, total: float) -> NbestEntry:
    """Replace the total, or add one behind the other fields where the line has none."""
    if entry.json:
        line = with_json_total(entry.fields[0], format_number(total), entry.features)
        return entry._replace(total=total, fields=(line,))
    fields, place = list(entry.fields), entry.total_place
    if place < 0:
        place = len(fields)
        if not fields[-1].endswith(b" "):
            fields[-1] += b" "
        fields.append(b"")
    tail = _behind_total(fields[place])
    fields[place] = b" " + format_number(total).encode() + tail
    return entry._replace(total=total, fields=tuple(fields), total_place=place)


def _behind_total(field: bytes) -> bytes:
    """What stands behind the number: a blank, or more numbers."""
    content = field.lstrip(BLANKS)
    return b"".join(content.partition(b" ")[1:])


def _with_json_features(entry: NbestEntry, names: Sequence[str], values: Sequence[float]) -> NbestEntry:
    new = {name: (float(value),) for name, value in zip(names, values, strict=True)}
    texts = {name: format_number(numbers[0]) for name, numbers in new.items()}
    line = with_json_features(entry.fields[0], texts, entry.features)
    return entry._replace(features={**entry.features, **new}, fields=(line,))


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


def format_number(value: float) -> str:
    """Seven significant digits: what the single precision of Moses' readers holds."""
    return f"{value + 0.0:.7g}"


def _has_bare_numbers(entry: NbestEntry) -> bool:
    field = entry.fields[entry.feature_place].lstrip(BLANKS)
    return UNLABELLED in entry.features and not field.startswith(UNLABELLED.encode() + b"=")


def _append(field: bytes, added: bytes, *, unlabelled: bool) -> bytes:
    """Put columns behind a feature field; bare numbers get a label, or nobody could read the line again."""
    content = field.rstrip(BLANKS)
    tail = field[len(content) :] if content else b" "
    if unlabelled:
        content = b" " + UNLABELLED.encode() + b"= " + content.lstrip(BLANKS)
    return content + b" " + added + tail
