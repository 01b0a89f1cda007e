r"""Moses n-best lists, read and written as bytes.

One line is one hypothesis: fields between ``|||``, of which this module understands four and keeps
the rest as they stand::

    0 ||| the house is small  ||| LM0= -8.17 TranslationModel0= -1.38 -1.42 ||| -0.18 ||| 0-0 1-1
    id    text                    features                                      total     kept verbatim

A *label* is ``Name=``, ``name:`` (before 2013) or ``Name=number`` in one token. The features are the
first field after the text that holds a label, or, where no field does, the first that is a row of
plain numbers (named ``Unlabelled0``); the total is the first field after it that is one number.
Lines end at ``\n`` only and tokens are split at space and tab only.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from math import isfinite
from typing import NamedTuple

from nmt_core.files import read_lines
from smt_bridge.errors import FormatError

SEPARATOR = b"|||"
UNLABELLED = "Unlabelled0"
_BLANKS = b" \t"
_LABEL = re.compile(rb"(?:^|[ \t;])[A-Za-z][^ \t=]*(?:=|:(?=[ \t]|$))")
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9]*")
_EQUALS = ord("=")
_WORD_SCORES = b"WordScores="  # Marian: scores of single words, before the features


class NbestEntry(NamedTuple):
    r"""One hypothesis: what was understood of its line, and the line's fields as they stood.

    ``hypothesis`` is without outer blanks; ``features`` maps a name to its values in the order of
    the line; ``total`` is None where the line has none. ``feature_place`` and ``total_place`` are
    indices into ``fields``, -1 where absent; ``ending`` is ``b"\r"`` for lines of Windows.
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


def parse_id(field: bytes, *, path: str, number: int) -> int:
    """Read the first field of a line; raises FormatError when it is not a whole number."""
    identifier = field.strip(_BLANKS)
    if not identifier.isdigit():
        shown = identifier.decode("utf-8", "replace")
        raise FormatError(
            path, f"expected 'id ||| text ...' with a whole number from 0 as id, not '{shown}'", line=number
        )
    return int(identifier)


def parse_entry(line: bytes, *, path: str, number: int) -> NbestEntry:
    """Understand one line.

    Raises FormatError, naming the line, for fewer than two fields, an id that is not a whole number,
    a feature field with something else than labels and numbers, and values that are not finite.
    """
    ending = b"\r" if line.endswith(b"\r") else b""
    fields = tuple(line[: len(line) - len(ending)].split(SEPARATOR))
    sentence = parse_id(fields[0], path=path, number=number)
    if len(fields) < 2:
        raise FormatError(path, "expected 'id ||| text ||| features ||| total' but there is no '|||'", line=number)
    feature_place, total_place = _find_places(fields)
    try:
        features = _parse_features(fields[feature_place]) if feature_place >= 0 else {}
    except ValueError as error:
        raise FormatError(path, str(error), line=number) from None
    total = float(fields[total_place]) if total_place >= 0 else None
    hypothesis = fields[1].strip(_BLANKS)
    return NbestEntry(sentence, hypothesis, features, total, number, fields, feature_place, total_place, ending)


def read_entries(path: str, *, shown: str | None = None) -> Iterator[NbestEntry]:
    """Yield the hypotheses of ``path`` (in errors called ``shown``) in the order of the file.

    Raises FormatError for a malformed line and for a file without lines.
    """
    name = shown or path
    number = 0
    for number, line in enumerate(read_lines(path), start=1):
        yield parse_entry(line, path=name, number=number)
    if number == 0:
        raise FormatError(name, "is empty; expected an n-best list")


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
    fields, place = list(entry.fields), entry.total_place
    if place < 0:
        place = len(fields)
        if not fields[-1].endswith(b" "):
            fields[-1] += b" "
        fields.append(b"")
    tail = b" " if fields[place].endswith(b" ") else b""
    fields[place] = b" " + format_number(total).encode() + tail
    return entry._replace(total=total, fields=tuple(fields), total_place=place)


def format_number(value: float) -> str:
    """Seven significant digits: what the single precision of Moses' readers holds."""
    return f"{value + 0.0:.7g}"


def _find_places(fields: Sequence[bytes]) -> tuple[int, int]:
    """Indices of the feature field and of the total; -1 for what is absent."""
    for place in range(2, len(fields)):
        if _LABEL.search(fields[place]) and not fields[place].lstrip(_BLANKS).startswith(_WORD_SCORES):
            return place, _find_total(fields, place + 1)
    rows = [place for place in range(2, len(fields)) if _is_row_of_numbers(fields[place])]
    if len(rows) > 1 or (rows and len(_split(fields[rows[0]])) > 1):
        return rows[0], _find_total(fields, rows[0] + 1)
    total_place = rows[0] if rows else -1
    blank = len(fields) > 2 and not fields[2].strip(_BLANKS)
    return (2 if blank else -1), total_place


def _find_total(fields: Sequence[bytes], begin: int) -> int:
    for place in range(begin, len(fields)):
        if _number(fields[place].strip(_BLANKS)) is not None:
            return place
    return -1


def _number(token: bytes) -> float | None:
    """Read a number as Moses does: no ``1_000``, which Python would take."""
    try:
        number = float(token)
    except ValueError:
        return None
    return None if b"_" in token else number


def _is_row_of_numbers(field: bytes) -> bool:
    tokens = _split(field)
    return bool(tokens) and all(_number(token) is not None for token in tokens)


def _split(field: bytes) -> list[bytes]:
    if b"\t" in field:
        field = field.replace(b"\t", b" ")
    return [token for token in field.split(b" ") if token]


def _parse_features(field: bytes) -> dict[str, tuple[float, ...]]:
    values: dict[str, list[float]] = {}
    current: list[float] | None = None
    for token in _split(field):
        number = None if token[-1] == _EQUALS else _number(token)
        if number is None:
            name, number = _parse_label(token)
            current = values.setdefault(name, [])
            if number is None:
                continue
        elif current is None:
            current = values.setdefault(UNLABELLED, [])
        current.append(number)
    features = {name: tuple(numbers) for name, numbers in values.items()}
    _check_values(features)
    return features


def _parse_label(token: bytes) -> tuple[str, float | None]:
    """Take a label apart: ``Name=``, ``name:`` or ``Name=number`` (cdec may put ``;`` behind the number)."""
    name, equals, value = token.rpartition(b"=")
    if equals and name:
        number = _number(value.rstrip(b";"))
        if number is not None or not value:
            return name.decode("utf-8", "surrogateescape"), number
    if token.endswith(b":") and len(token) > 1:
        return token[:-1].decode("utf-8", "surrogateescape"), None
    shown = token.decode("utf-8", "replace")
    raise ValueError(f"'{shown}' in the feature field is neither a label (Name=) nor a number")


def _check_values(features: dict[str, tuple[float, ...]]) -> None:
    for name, numbers in features.items():
        if not numbers:
            raise ValueError(f"feature {name} has no value")
        if not all(map(isfinite, numbers)):
            raise ValueError(f"feature {name} is not a finite number; tuners and decoders cannot use nan or inf")


def _has_bare_numbers(entry: NbestEntry) -> bool:
    field = entry.fields[entry.feature_place].lstrip(_BLANKS)
    return UNLABELLED in entry.features and not field.startswith(UNLABELLED.encode() + b"=")


def _append(field: bytes, added: bytes, *, unlabelled: bool) -> bytes:
    """Put columns behind a feature field; bare numbers get a label, or nobody could read the line again."""
    content = field.rstrip(_BLANKS)
    tail = field[len(content) :] if content else b" "
    if unlabelled:
        content = b" " + UNLABELLED.encode() + b"= " + content.lstrip(_BLANKS)
    return content + b" " + added + tail
