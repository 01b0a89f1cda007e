"""Messages on the wire: their fields, counted before they are parsed, since a few bytes can be millions of objects.

The format is that of protocol buffers (protobuf.dev/programming-guides/encoding): a field is a tag, a
varint of its number and its wire type, and a value, which has a length of its own or one that the type
gives.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Shape = Mapping[int, Any]
"""The repeated messages in which fields are counted too: by field number, their own shapes."""

_TRANSLATE: Shape = {}
_SCORE: Shape = {4: {}}  # groups
_RERANK: Shape = {4: {}}  # lists
SHAPES: Mapping[str, Shape] = {
    "Translate": _TRANSLATE,
    "TranslateStream": {2: _TRANSLATE},
    "Score": _SCORE,
    "ScoreStream": {2: _SCORE},
    "Rerank": _RERANK,
    "Encode": {},
}
"""Of the requests of each method."""

_VARINT, _EIGHT_BYTES, _LENGTH, _FOUR_BYTES = 0, 1, 2, 5
_SHORTEST = 2  # bytes of a field


def has_more_fields(content: bytes, shape: Shape, most: int) -> bool:
    """Whether a message has more than ``most`` fields, in all its parts that ``shape`` names.

    Looks at no more of them. What is no message has as many as can be read.
    """
    if len(content) <= _SHORTEST * most:
        return False
    parts, seen = [(0, len(content), shape)], 0
    try:
        while parts:
            place, end, inner = parts.pop()
            while place < end:
                seen += 1
                if seen > most:
                    return True
                tag = content[place]
                if tag & 0x87 == _LENGTH and tag >> 3 not in inner:  # as most are, with lengths of one byte or two
                    size = content[place + 1]
                    if size < 0x80:
                        place += 2 + size
                        continue
                    if (more := content[place + 2]) < 0x80:
                        place += 3 + (size & 0x7F | more << 7)
                        continue
                tag, place = _varint(content, place)
                kind = tag & 7
                if kind == _LENGTH:
                    size, place = _varint(content, place)
                    if (nested := inner.get(tag >> 3)) is not None:
                        parts.append((place, min(place + size, end), nested))
                    place += size
                elif kind == _VARINT:
                    _, place = _varint(content, place)
                else:
                    place += {_EIGHT_BYTES: 8, _FOUR_BYTES: 4}.get(kind, 0)
    except IndexError:  # truncated
        return False
    return False


def utf8(text: str) -> str:
    """The text with U+FFFD for what was not UTF-8 in a file; messages hold UTF-8 only."""
    return text if text.isascii() else text.encode("utf-8", "surrogatepass").decode("utf-8", "replace")


def head(number: int, size: int) -> bytes:
    """What comes before the ``size`` bytes of a field with a length; ``number`` below 16."""
    found = bytearray([number << 3 | _LENGTH])
    while size >= 0x80:
        found.append(size & 0x7F | 0x80)
        size >>= 7
    found.append(size)
    return bytes(found)


def _varint(content: bytes, place: int) -> tuple[int, int]:
    """The number at a place, and the place behind it."""
    byte = content[place]
    place += 1
    value, shift = byte & 0x7F, 7
    while byte & 0x80:
        byte = content[place]
        place += 1
        value |= (byte & 0x7F) << shift
        shift += 7
    return value, place
