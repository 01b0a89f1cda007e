r"""N-best lists as lines of JSON: an object per hypothesis, or an object per sentence with a list in it.

::

    {"id": 0, "text": "the house", "features": {"LM0": -8.17, "TM0": [-1.5, 0.02]}, "total": -0.18}
    {"id": 0, "hypotheses": [{"text": "the house", "total": -0.18}, {"text": "a house", "total": -0.2}]}
    {"sentence_id": 1, "translations": ["the house", "a house"], "scores": [-0.18, -0.2]}

The last is Sockeye's, whose ids begin at 1. Each hypothesis is written as an object of its own; members that nobody
knows keep their values, those of a sentence stand in each of its hypotheses. Where there are no features, the total is
the only one, ``Score0``.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from nmt_core.base.messages import counted
from smt_bridge.errors import FormatError
from smt_bridge.nbest.entry import JSON_FEATURES, JSON_TOTALS, NbestEntry, OriginalLine, checked_features

SCORE = "Score0"
_TEXTS = ("text", "hypothesis", "hyp", "translation")
_LISTS = ("hypotheses", "nbest", "translations")
_SOCKEYE_ID = "sentence_id"
_IDS = ("id", _SOCKEYE_ID, "sent_id", "sentence")
_SCORES = "scores"
_HIGHEST_ID = 10**15
_OF_THE_BEST = frozenset((*_TEXTS, *JSON_TOTALS, *_IDS, *_LISTS, _SCORES))


def read_json_entries(lines: Iterable[bytes], path: str) -> Iterator[NbestEntry]:
    """Yield the hypotheses of the lines; raises FormatError, naming the line. Blank lines are passed by."""
    for number, line in enumerate(lines, start=1):
        if not line.strip(b" \t\r"):
            continue
        try:
            yield from _read_line(line.removesuffix(b"\r"), number, b"\r" if line.endswith(b"\r") else b"")
        except (ValueError, OverflowError, RecursionError) as error:
            raise FormatError(path, f"not a JSON line of an n-best list: {error}", line=number) from None


def _read_line(line: bytes, number: int, ending: bytes) -> Iterator[NbestEntry]:
    members = json.loads(line.decode("utf-8", "surrogateescape"))
    if not isinstance(members, dict):
        raise ValueError("expected a JSON object")
    sentence, listing = _sentence(members), _first(members, _LISTS)
    if listing is None:
        yield _entry(members, sentence, number, (line,), ending)
        return
    for hypothesis in _hypotheses(members, members[listing], sentence):
        yield _entry(hypothesis, sentence, number, (), ending)


def _first(members: Mapping[str, Any], keys: Sequence[str]) -> str | None:
    """The first of ``keys`` that there is."""
    return next((key for key in keys if key in members), None)


def _sentence(members: Mapping[str, Any]) -> int:
    key = _first(members, _IDS)
    value = None if key is None else members[key]
    if isinstance(value, str) and value.isascii() and value.isdigit():
        value = int(value)
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < _HIGHEST_ID:
        raise ValueError('expected "id": a whole number from 0')
    if key == _SOCKEYE_ID:
        if value == 0:
            raise ValueError('"sentence_id" is Sockeye\'s and begins at 1; call ids that begin at 0 "id"')
        return value - 1
    return value


def _hypotheses(members: Mapping[str, Any], listed: Any, sentence: int) -> Iterator[dict[str, Any]]:
    """One object per element of the list, with the members of the sentence behind its own."""
    scores = members.get(_SCORES)
    if not isinstance(listed, list) or not isinstance(scores, list | None):
        raise ValueError("expected a list of hypotheses, and of scores where there are any")
    if scores and len(scores) != len(listed):
        raise ValueError(
            f"found {counted(len(scores), 'score')} for {counted(len(listed), 'hypothesis', 'hypotheses')}"
        )
    shared = {key: value for key, value in members.items() if key not in _OF_THE_BEST}
    for place, element in enumerate(listed):
        own = {"text": element} if isinstance(element, str) else element
        if not isinstance(own, dict):
            raise ValueError("expected a JSON object")
        hypothesis = {"id": sentence} | {key: value for key, value in own.items() if key not in _IDS}
        if scores and _first(own, JSON_TOTALS) is None:
            hypothesis["score"] = scores[place]
        yield hypothesis | {key: value for key, value in shared.items() if key not in own}


def _entry(members: dict[str, Any], sentence: int, number: int, fields: tuple[bytes, ...], ending: bytes) -> NbestEntry:
    key = _first(members, _TEXTS)
    if key is None or not isinstance(members[key], str):
        raise ValueError('expected "text" with the words of the hypothesis')
    total = _total(members)
    known = members.get(JSON_FEATURES)
    features: dict[str, tuple[float, ...]]
    if JSON_FEATURES not in members:
        features = {} if total is None else {SCORE: (total,)}
    elif isinstance(known, dict):
        features = {_writable(name): _numbers(name, value) for name, value in known.items()}
    else:
        raise ValueError('"features" must be an object of names and numbers')
    checked_features(features)
    original = OriginalLine(fields, features=len(features), total=total, ending=ending, members=members)
    return NbestEntry(sentence, _words(members[key]), features, total, number, original)


def _words(text: str) -> bytes:
    r"""The words as bytes; line ends within the text are blanks, or one hypothesis would be two lines."""
    plain = text.replace("\n", " ").replace("\r", " ")
    try:
        return plain.encode("utf-8", "surrogateescape").strip(b" \t")
    except UnicodeEncodeError:
        return plain.encode("utf-8", "replace").strip(b" \t")


def _total(members: Mapping[str, Any]) -> float | None:
    key = _first(members, JSON_TOTALS)
    value = None if key is None else members[key]
    if key is None or value is None:
        return None
    numbers = _numbers(key, value[0] if isinstance(value, list) and value else value)
    checked_features({key: numbers})
    return numbers[0]


def _writable(name: str) -> str:
    """The name, if lists of Moses and files of weights can hold it."""
    if not name or "|||" in name or any(character.isspace() for character in name):
        raise ValueError(f"the feature name {name!r} must be without blanks and |||, and not empty")
    return name


def _numbers(name: str, value: Any) -> tuple[float, ...]:
    values: Sequence[Any] = value if isinstance(value, list) else [value]
    if not all(isinstance(number, int | float) and not isinstance(number, bool) for number in values):
        raise ValueError(f"{name} must be a number or a list of numbers")
    return tuple(float(number) for number in values)
