"""The requests of clients: their messages, and the sizes in which long lists are sent; free of torch."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeVar

from nmt_core.base.errors import ConfigError
from nmt_core.base.interfaces import PairScore, SentencePair
from nmt_core.serving.wire import utf8
from nmt_core.v1 import nmt_pb2 as pb

CHUNK_PAIRS = 2000
CHUNK_PHRASES = 500
CHUNK_CHARACTERS = 1 << 20
_CHUNK_BYTES = 4 << 20  # of n-best lists
_Request = TypeVar("_Request")


def score_request(pairs: Iterable[SentencePair], *, model: str, **options: Any) -> pb.ScoreRequest:
    """A request for the scores of pairs."""
    messages = [pb.Pair(source=utf8(pair.source), target=utf8(pair.target)) for pair in pairs]
    return pb.ScoreRequest(model=model, pairs=messages, **options)


def from_pair_score(score: pb.PairScore, *, per_word: bool) -> PairScore:
    """The score of a message that has one."""
    columns = score.attention_columns
    attention = None
    if columns:
        weights = tuple(score.attention)
        attention = tuple(weights[start : start + columns] for start in range(0, len(weights), columns))
    return PairScore(
        score.log_prob,
        score.unknown_source_words,
        score.unknown_target_words,
        tuple(score.word_log_probs) if per_word else None,
        attention,
    )


def translate_request(texts: Sequence[str], model: str, options: dict[str, Any]) -> pb.TranslateRequest:
    """A request for the translations of texts. Raises ConfigError for an option that there is none of."""
    return _request(pb.TranslateRequest, "translation", model=model, texts=map(utf8, texts), **options)


def encode_request(texts: Sequence[str], model: str, options: dict[str, Any]) -> pb.EncodeRequest:
    """A request for the vectors of texts. Raises ConfigError for an option that there is none of."""
    return _request(pb.EncodeRequest, "vector", model=model, texts=map(utf8, texts), **options)


def rerank_request(lists: Sequence[pb.NbestList], model: str, options: dict[str, Any]) -> pb.RerankRequest:
    """A request for the rankings of n-best lists. Raises ConfigError for an option that there is none of."""
    return _request(pb.RerankRequest, "ranking", model=model, lists=lists, **options)


def _request(kind: Callable[..., _Request], what: str, **fields: Any) -> _Request:
    try:
        return kind(**fields)
    except ValueError as error:
        raise ConfigError(f"an option of a {what} request is wrong: {error}") from error


def windows(items: Iterable[Any], size: int) -> Iterator[list[Any]]:
    """Lists of so many items, the last one shorter."""
    items = iter(items)
    while part := list(itertools.islice(items, size)):
        yield part


def text_windows(texts: Iterable[str], size: int) -> Iterator[list[str]]:
    """Lists of so many texts, or of fewer where they are long."""
    for part in windows(texts, size):
        yield from _cut(part, list(map(len, part)), most=size, characters=CHUNK_CHARACTERS)


def list_windows(lists: Iterable[pb.NbestList]) -> Iterator[list[pb.NbestList]]:
    """Parts of n-best lists: of so many hypotheses and bytes at most, or of one list."""
    part: list[pb.NbestList] = []
    hypotheses = size = 0
    for one in lists:
        hypotheses += len(one.hypotheses)
        size += one.ByteSize()
        if part and (hypotheses > CHUNK_PAIRS or size > _CHUNK_BYTES):
            yield part
            part, hypotheses, size = [], len(one.hypotheses), one.ByteSize()
        part.append(one)
    if part:
        yield part


def chunks_of(
    pairs: Sequence[SentencePair], *, most: int, characters: int = CHUNK_CHARACTERS
) -> Iterator[Sequence[SentencePair]]:
    """Cut by number and by size; a character has at most four bytes."""
    return _cut(pairs, [len(pair.source) + len(pair.target) for pair in pairs], most=most, characters=characters)


def _cut(items: Any, sizes: Sequence[int], *, most: int, characters: int) -> Iterator[Any]:
    """Parts of a list of at most so many items and ``characters``, or of one item."""
    start = together = 0
    for index, size in enumerate(sizes):
        if index - start == most or (index > start and together + size > characters):
            yield items[start:index]
            start, together = index, 0
        together += size
    if start < len(items):
        yield items[start:]
