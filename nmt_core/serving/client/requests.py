"""The requests of clients: long inputs are cut into messages well below the server's limits; free of torch."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

from nmt_core.base.errors import ConfigError
from nmt_core.base.words import utf8
from nmt_core.v1 import nmt_pb2 as pb

PAIRS = 2000
"""Of a request, at most."""
CHARACTERS = 1 << 20
"""Of a request, at most."""

_PHRASES = 500
_BYTES = 4 << 20  # of n-best lists
_Item = TypeVar("_Item")
_Request = TypeVar("_Request")


def translate_requests(texts: Iterable[str], window: int, **fields: Any) -> Iterator[pb.TranslateRequest]:
    """Requests for translations, of ``window`` texts each."""
    return (request_of(pb.TranslateRequest, texts=part, **fields) for part in _cut(map(utf8, texts), window))


def score_requests(
    pairs: Iterable[tuple[str, str]], window: int = PAIRS, characters: int = CHARACTERS, **fields: Any
) -> Iterator[pb.ScoreRequest]:
    """Requests for the scores of pairs, of ``window`` pairs each."""
    messages = (pb.Pair(source=utf8(source), target=utf8(target)) for source, target in pairs)
    parts = _cut(messages, window, lambda pair: len(pair.source) + len(pair.target), characters)
    return (request_of(pb.ScoreRequest, pairs=part, **fields) for part in parts)


def rerank_requests(lists: Iterable[pb.NbestList], **fields: Any) -> Iterator[pb.RerankRequest]:
    """Requests for the rankings of n-best lists; each hypothesis counts as 2 KiB at least."""
    parts = _cut(lists, PAIRS, lambda one: max(one.ByteSize(), len(one.hypotheses) * _BYTES // PAIRS), _BYTES)
    return (request_of(pb.RerankRequest, lists=part, **fields) for part in parts)


def encode_requests(texts: Iterable[str], **fields: Any) -> Iterator[pb.EncodeRequest]:
    """Requests for the vectors of phrases."""
    return (request_of(pb.EncodeRequest, texts=part, **fields) for part in _cut(map(utf8, texts), _PHRASES))


def method_of(request: Any) -> str:
    """The method that a request is of."""
    return type(request).__name__.removesuffix("Request")


def items_of(answer: Any) -> list[Any]:
    """The sentences, scores, rankings or vectors of an answer: its first field."""
    return list(getattr(answer, answer.DESCRIPTOR.fields_by_number[1].name))


def request_of(kind: Callable[..., _Request], **fields: Any) -> _Request:
    """The message with these fields. Raises ConfigError for a field that there is none of."""
    try:
        return kind(**fields)
    except ValueError as error:
        raise ConfigError(f"an option of a {method_of(kind()).lower()} request is wrong: {error}") from error


def _cut(
    items: Iterable[_Item], most: int, size_of: Callable[[Any], int] = len, size: int = CHARACTERS
) -> Iterator[list[_Item]]:
    """Parts of at most so many items and that ``size`` in all, or of one item; a full part does not wait for more."""
    part: list[_Item] = []
    total = 0
    for item in items:
        mine = size_of(item)
        if part and total + mine > size:
            yield part
            part, total = [], 0
        part.append(item)
        total += mine
        if len(part) == most:
            yield part
            part, total = [], 0
    if part:
        yield part
