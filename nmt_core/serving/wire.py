"""Messages on the wire: each is read within a time, and its fields are counted before it is parsed.

What a client has sent of a message stays in the library's memory until the rest is there, and a few bytes of it can be
millions of objects. Answers are put together of small pieces, so that no other thread waits long for Python meanwhile.
What would be large as Python values, the weights of attention, goes from an array to the bytes as it is. Small messages
of which there may be thousands are made inside another one and share its memory: with each 10,000 blocks that messages
free, protobuf has the C library return all free memory to the kernel (malloc_trim), and what comes next takes it page
by page again.

The format is protobuf's (protobuf.dev/programming-guides/encoding): a message is its fields one after
the other. A field is a tag, a varint of its number and its wire type, and a value, which has a length of its own or
one that the type gives.
"""

from __future__ import annotations

import asyncio
import weakref
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from google.protobuf.message import DecodeError
from google.rpc import code_pb2

from nmt_core.serving.errors import RpcError, invalid
from nmt_core.serving.limits import Limits
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
_READ_OF_A_CLIENT = 4  # messages at once
_ENDED = 0.1  # seconds


class MessageReader:
    """Reads and parses the messages of calls: each within ``limits.body`` seconds, and few of one client at once.

    ``largest`` is the most bytes of a message, where that is less than what the library takes.
    """

    def __init__(self, limits: Limits, largest: int | None = None) -> None:
        self._limits, self._largest = limits, largest
        self._of: weakref.WeakValueDictionary[str, asyncio.Semaphore] = weakref.WeakValueDictionary()

    async def first(self, context: Any, client: str) -> bytes:
        """The first message of a call. Raises RpcError."""
        permits = self._of.setdefault(client, asyncio.Semaphore(_READ_OF_A_CLIENT))
        try:
            async with permits, asyncio.timeout(self._limits.body):
                content = await context.read()
        except TimeoutError:
            problem = f"the request did not arrive within {self._limits.body:g} s"
            raise RpcError(problem, code=code_pb2.DEADLINE_EXCEEDED, reason="SLOW_MESSAGE") from None
        if not isinstance(content, bytes):  # the library's EOF
            await asyncio.sleep(_ENDED)  # a call that the library ended, as with too large a message, is cancelled here
            raise invalid("", "the call ended without a request", reason="NOT_A_MESSAGE")
        return content

    def parse(self, handler: Any, method: str, content: bytes) -> Any:
        """The message for the method's ``handler``. Raises RpcError."""
        if self._largest is not None and len(content) > self._largest:
            problem = f"the request has {len(content)} bytes; at most {self._largest}"
            raise invalid("", problem, reason="TOO_MANY_ITEMS")
        if has_more_fields(content, SHAPES.get(method, {}), self._limits.fields):
            problem = f"the request has more fields than {self._limits.items} items need; send several requests"
            raise invalid("", problem, reason="TOO_MANY_ITEMS")
        try:
            return handler.request_deserializer(content)
        except DecodeError as error:
            problem = "the request is not a message of this method, or a text in it is not UTF-8"
            raise invalid("", problem, reason="NOT_A_MESSAGE") from error


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
    """A response as one of a stream, with the id of its request; both kinds of streams have the same fields."""
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
