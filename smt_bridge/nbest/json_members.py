r"""Changing one member of a JSON object and leaving every other character of its line as it stood.

>>> with_json_features(b'{"id": 0, "text": "a", "features": {"LM0": -1.50}, "x": 1e0}', {"NMT0": "-2.5"}, {})
b'{"id": 0, "text": "a", "features": {"LM0": -1.50, "NMT0": -2.5}, "x": 1e0}'
>>> with_json_total(b'{"id": 0, "text": "a", "score":-1}', "-3", {})
b'{"id": 0, "text": "a", "score":-3}'
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

FEATURES = "features"
TOTALS = ("total", "score")
_BLANKS = " \t\r\n"
_DECODER = json.JSONDecoder()


class Member(NamedTuple):
    """A member of an object: its key, its value, and where key (``start``) and value (``begin`` to ``end``) stand."""

    key: str
    value: Any
    start: int
    begin: int
    end: int


class Span(NamedTuple):
    """An object's members, or a list's elements (with empty keys), and the place of the closing bracket."""

    members: tuple[Member, ...]
    close: int

    def first(self, keys: Sequence[str]) -> Member | None:
        """The member under the first of ``keys`` that there is."""
        for key in keys:
            found = next((member for member in self.members if member.key == key), None)
            if found is not None:
                return found
        return None


def read_span(text: str, begin: int = 0, *, brackets: str = "{}") -> Span:
    """Read the object (or with ``[]`` the list) that begins at ``begin``; raises ValueError where there is none."""
    at = _skip(text, begin)
    if text[at : at + 1] != brackets[0]:
        raise ValueError(f"expected a JSON {'object' if brackets == '{}' else 'list'}")
    members: list[Member] = []
    at = _skip(text, at + 1)
    while text[at : at + 1] != brackets[1]:
        member = _read_member(text, at, with_key=brackets == "{}")
        members.append(member)
        at = _skip(text, member.end)
        if text[at : at + 1] == ",":
            at = _skip(text, at + 1)
        elif text[at : at + 1] != brackets[1]:
            raise ValueError(f"expected ',' or '{brackets[1]}' at character {at + 1}")
    return Span(tuple(members), at)


def _read_member(text: str, at: int, *, with_key: bool) -> Member:
    key, start = "", at
    if with_key:
        key, at = _DECODER.raw_decode(text, at)
        at = _skip(text, at)
        if not isinstance(key, str) or text[at : at + 1] != ":":
            raise ValueError(f"expected a key in quotes and ':' at character {at + 1}")
        at = _skip(text, at + 1)
    value, end = _DECODER.raw_decode(text, at)
    return Member(key, value, start, at, end)


def read_line(line: bytes) -> tuple[str, Span]:
    """The text of a line that is one object, and its members; raises ValueError for anything else."""
    text = line.decode("utf-8", "surrogateescape")
    span = read_span(text)
    if text[span.close + 1 :].strip(_BLANKS):
        raise ValueError("there is text behind the JSON object; one object a line")
    return text, span


def with_json_features(line: bytes, added: Mapping[str, str], known: Mapping[str, Sequence[float]]) -> bytes:
    """Put numbers (as text) into the features of a line; a line without any gets the ``known`` ones first."""
    text, span = read_line(line)
    member = span.first([FEATURES])
    content = [f"{json.dumps(name, ensure_ascii=False)}: {number}" for name, number in added.items()]
    if member is None:
        before = [f"{json.dumps(name, ensure_ascii=False)}: {_as_json(values)}" for name, values in known.items()]
        text = _insert(text, span, f'"{FEATURES}": {{{", ".join(before + content)}}}')
    else:
        text = _insert(text, read_span(text, member.begin), ", ".join(content))
    return text.encode("utf-8", "surrogateescape")


def with_json_total(line: bytes, number: str, known: Mapping[str, Sequence[float]]) -> bytes:
    """Replace the total of a line, or add one; a line without features gets the ``known`` ones."""
    text, span = read_line(line)
    if known and span.first([FEATURES]) is None:
        text, span = read_line(with_json_features(line, {}, known))
    member = span.first(TOTALS)
    if member is None:
        text = _insert(text, span, f'"{TOTALS[0]}": {number}')
    else:
        text = text[: member.begin] + number + text[member.end :]
    return text.encode("utf-8", "surrogateescape")


def _insert(text: str, span: Span, content: str) -> str:
    """Put a member behind the last one."""
    place = span.members[-1].end if span.members else span.close
    return text[:place] + (", " if span.members else "") + content + text[place:]


def _as_json(values: Sequence[float]) -> str:
    numbers = [f"{value:.9g}" for value in values]
    return numbers[0] if len(numbers) == 1 else f"[{', '.join(numbers)}]"


def _skip(text: str, at: int) -> int:
    while at < len(text) and text[at] in _BLANKS:
        at += 1
    return at
