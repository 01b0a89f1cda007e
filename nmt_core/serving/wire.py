"""Messages on the wire: their fields, counted before they are parsed, since a few bytes can be millions of objects.

Answers are put together of small pieces, so that no other thread waits long for Python meanwhile. What would be large
as Python values, the weights of attention, goes from an array to the bytes as it is. Small messages of which there may
be thousands are made inside another one and share its memory: with each 10,000 blocks that messages free, protobuf
has the C library return all free memory to the kernel (malloc_trim), and what comes next takes it page by page again.

The format is protobuf's (protobuf.dev/programming-guides/encoding): a message is its fields one after
the other. A field is a tag, a varint of its number and its wire type, and a value, which has a length of its own or
one that the type gives.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from nmt_core.v1 import nmt_pb2 as pb

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

ITEMS = 1
"""The field of an answer's sentences, scores, vectors or rankings, and of a sentence's translations."""

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


def delimited(number: int, pieces: Iterable[bytes]) -> list[bytes]:
    """A field with the bytes of these pieces; its number is below 16."""
    content = list(pieces)
    size = sum(map(len, content))
    head = bytearray([number << 3 | _LENGTH])
    while size >= 0x80:
        head.append(size & 0x7F | 0x80)
        size >>= 7
    head.append(size)
    return [bytes(head), *content]


def floats(number: int, weights: Any) -> list[bytes]:
    """A field of packed numbers, from an array or rows."""
    return delimited(number, [np.asarray(weights, dtype="<f4").tobytes()])


def in_stream(name: str, response: bytes) -> bytes:
    """A response as one of a stream, with the id of its request."""
    return b"".join([pb.ScoreStreamResponse(id=name).SerializeToString(), *delimited(2, [response])])


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
