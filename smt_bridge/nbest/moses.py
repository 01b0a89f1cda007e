r"""A line of a list in the style of Moses, understood.

One line is one hypothesis: fields between ``|||``, of which this module understands four and keeps
the rest as they stand::

    0 ||| the house is small  ||| LM0= -8.17 TranslationModel0= -1.38 -1.42 ||| -0.18 ||| 0-0 1-1
    id    text                    features                                      total     kept verbatim

A *label* is ``Name=``, ``name:`` (before 2013) or ``Name=number`` in one token. The features are the
first field after the text that holds a label, or, where no field does, the first that is a row of
plain numbers (named ``Unlabelled0``); the total is the first field after it that is one number. Numbers
that Nematus' ``rescore.py`` put behind the total are the feature ``Rescored0``.
Lines end at ``\n`` only and tokens are split at space and tab only.

Lists of ``moses -report-segmentation`` mark the phrases: behind every target phrase stands which source words, counted
from 0, it translates; ``-report-segmentation-enriched`` puts more behind these two numbers::

    Un homme |0-1| avec un chapeau |2-4| . |5-5|
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from nmt_core.base.interfaces import SentencePair
from nmt_core.base.messages import counted
from smt_bridge.errors import FormatError
from smt_bridge.moses_lines import BLANKS, SEPARATOR, pick_factor, split_tokens
from smt_bridge.nbest.entry import LARGEST, UNLABELLED, NbestEntry, OriginalLine, checked_features

RESCORED = "Rescored0"
MARK = re.compile(rb"(?:^|(?<=[ \t]))\|([0-9]{1,9})-([0-9]{1,9})(?:,[^|]*)?\|(?=[ \t]|$)")
_NONE = "has no marks of the phrases used, such as |0-1|; decode with -report-segmentation, or leave out phrases:SPEC"
_LABEL = re.compile(rb"(?:^|[ \t;])[A-Za-z][^ \t=;]*(?:=|:(?=[ \t]|$))")
_EQUALS = ord("=")
_LONGEST_ID = 15  # digits
_WORD_SCORES = b"WordScores="  # Marian: scores of single words, before the features


def parse_id(field: bytes, *, path: str, number: int) -> int:
    """Read the first field of a line; raises FormatError when it is not a whole number."""
    identifier = field.strip(BLANKS)
    if not identifier.isdigit() or len(identifier) > _LONGEST_ID:
        shown = identifier.decode("utf-8", "replace")[:40]
        raise FormatError(
            path, f"expected 'id ||| text ...' with a whole number from 0 as id, not '{shown}'", line=number
        )
    return int(identifier)


def parse_entry(line: bytes, *, path: str, number: int, factor: int | None = None) -> NbestEntry:
    """Understand one line; with ``factor`` the words are that one of the factors between ``|``.

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
    total, more = _total(fields[total_place]) if total_place >= 0 else (None, ())
    if not all(-LARGEST <= value <= LARGEST for value in (total or 0.0, *more)):
        raise FormatError(path, f"the total is not a finite number up to {LARGEST:.2g}", line=number)
    if more:
        features[RESCORED] = more
    try:
        hypothesis = clean_words(fields[1], factor=factor)
    except ValueError as error:
        raise FormatError(path, str(error), line=number) from None
    original = OriginalLine(fields, feature_place, total_place, len(features), total, ending)
    return NbestEntry(sentence, hypothesis, features, total, number, original)


def clean_words(field: bytes, *, factor: int | None = None) -> bytes:
    """The words of a text field: without the marks of ``-report-segmentation`` and, if asked, one factor of each.

    Raises ValueError for a word without that factor.
    """
    words = field.strip(BLANKS)
    if b"|" not in words and not factor:
        return words
    if MARK.search(words):
        words = b" ".join(split_tokens(MARK.sub(b" ", words)))
    return words if factor is None else pick_factor(words, factor)


def _find_places(fields: Sequence[bytes]) -> tuple[int, int]:
    """Indices of the feature field and of the total; -1 for what is absent."""
    for place in range(2, len(fields)):
        if _LABEL.search(fields[place]) and not fields[place].lstrip(BLANKS).startswith(_WORD_SCORES):
            return place, _find_total(fields, place + 1)
    rows = [place for place in range(2, len(fields)) if is_row_of_numbers(fields[place])]
    if len(rows) > 1 or (rows and len(split_tokens(fields[rows[0]])) > 1):
        return rows[0], _find_total(fields, rows[0] + 1)
    total_place = rows[0] if rows else -1
    blank = len(fields) > 2 and not fields[2].strip(BLANKS)
    return (2 if blank else -1), total_place


def _find_total(fields: Sequence[bytes], begin: int) -> int:
    for place in range(begin, len(fields)):
        if is_row_of_numbers(fields[place]):
            return place
    return -1


def _total(field: bytes) -> tuple[float, tuple[float, ...]]:
    """The total, and what stands behind it."""
    first, *more = [float(token) for token in split_tokens(field)]
    return first, tuple(more)


def number_of(token: bytes) -> float | None:
    """A number as Moses reads it, None for what is none: so is ``1_000``, which Python would take."""
    try:
        number = float(token)
    except ValueError:
        return None
    return None if b"_" in token else number


def is_row_of_numbers(field: bytes, *, size: int | None = None) -> bool:
    """Whether a field holds numbers and nothing else, and ``size`` of them if that is given."""
    tokens = split_tokens(field)
    wanted = bool(tokens) if size is None else len(tokens) == size
    return wanted and all(number_of(token) is not None for token in tokens)


def _parse_features(field: bytes) -> dict[str, tuple[float, ...]]:
    values: dict[str, list[float]] = {}
    current: list[float] | None = None
    for token in split_tokens(field):
        number = None if token[-1] == _EQUALS else number_of(token)
        if number is None:
            name, number = _parse_label(token)
            current = values.setdefault(name, [])
            if number is None:
                continue
        elif current is None:
            current = values.setdefault(UNLABELLED, [])
        current.append(number)
    features = {name: tuple(numbers) for name, numbers in values.items()}
    checked_features(features)
    return features


def _parse_label(token: bytes) -> tuple[str, float | None]:
    """Take a label apart: ``Name=``, ``name:`` or ``Name=number`` (cdec may put ``;`` behind the number)."""
    name, equals, value = token.rpartition(b"=")
    if equals and name:
        number = number_of(value.rstrip(b";"))
        if number is not None or not value:
            return name.decode("utf-8", "surrogateescape"), number
    if token.endswith(b":") and len(token) > 1:
        return token[:-1].decode("utf-8", "surrogateescape"), None
    shown = token.decode("utf-8", "replace")
    raise ValueError(f"'{shown}' in the feature field is neither a label (Name=) nor a number")


def phrase_pairs(source: str, entry: NbestEntry) -> list[SentencePair]:
    """The pairs in the order of the target; words are those of ``source`` and of the entry's hypothesis.

    Raises ValueError for a hypothesis without marks, with words behind the last one, or with one beyond the source.
    """
    read, written = source.split(" ") if source else [], entry.text.split(" ") if entry.text else []
    pairs, begin, end_of_mark = [], 0, 0
    original = entry.original
    marked = b"" if original is None else original.fields[1]
    for mark in MARK.finditer(marked):
        size = len(split_tokens(marked[end_of_mark : mark.start()]))
        first, last = int(mark[1]), int(mark[2])
        if not first <= last < len(read):
            raise ValueError(
                f"the mark {mark[0].decode()} is not of a source of {counted(len(read), 'word')}; is it another source?"
            )
        pairs.append(SentencePair(" ".join(read[first : last + 1]), " ".join(written[begin : begin + size])))
        begin, end_of_mark = begin + size, mark.end()
    if begin != len(written):
        raise ValueError("has words behind the last mark of a phrase" if pairs else _NONE)
    return pairs
