"""Answers as bytes, put together of small pieces, so that no other thread waits long for Python meanwhile.

A message's bytes are those of its fields one after the other (protobuf.dev/programming-guides/encoding); what
would be large as Python values, the weights of attention, goes from an array to the bytes as it is. Small messages
of which there may be thousands are made inside another one and share its memory: with each 10,000 blocks that messages
free, protobuf has the C library return all free memory to the kernel (malloc_trim), and what comes next takes it
page by page again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from nmt_core.base.interfaces import PairScore
from nmt_core.inference.output.alignment import hard_points
from nmt_core.inference.output.finish import Translation
from nmt_core.serving.errors import RpcError, to_error
from nmt_core.serving.wire import head, utf8
from nmt_core.text.alignment import Points
from nmt_core.v1 import nmt_pb2 as pb

_AT_A_TIME = 100  # items of a piece
_ITEMS = 1  # of an answer: its sentences, scores, vectors or rankings; and the translations of a sentence


def translate_answer(
    found: Sequence[Sequence[Translation] | RpcError],
    shown: Sequence[Sequence[str]],
    attention: bool,
    model: bytes = b"",
) -> bytes:
    """A ``TranslateResponse`` with these n-best lists; ``shown`` are their texts, ``model`` is of ``model_fields``."""
    parts: list[bytes] = []
    for one, texts in zip(found, shown, strict=True):
        parts += _field(_ITEMS, _translations(one, texts, attention=attention))
    return b"".join([*parts, model])


def score_answer(scores: Sequence[PairScore | RpcError], request: pb.ScoreRequest, model: bytes = b"") -> bytes:
    """A ``ScoreResponse`` with these scores."""
    start = len(request.pairs)
    parts = list(_scores(scores[:start]))
    for group in request.groups:
        parts += _field(2, _scores(scores[start : start + len(group.targets)]))
        start += len(group.targets)
    return b"".join([*parts, model])


def encode_answer(found: Sequence[tuple[Sequence[float], int] | RpcError], model: bytes = b"") -> bytes:
    """An ``EncodeResponse`` with these vectors."""
    vectors = (
        pb.PhraseVector(error=to_error(one))
        if isinstance(one, RpcError)
        else pb.PhraseVector(values=one[0], unknown_words=one[1])
        for one in found
    )
    parts = [part for vector in vectors for part in _field(_ITEMS, [vector.SerializeToString()])]
    return b"".join([*parts, model])


def rerank_answer(rankings: Iterable[pb.Ranking], model: bytes = b"") -> bytes:
    """A ``RerankResponse`` with these rankings."""
    parts = [part for one in rankings for part in _field(_ITEMS, [one.SerializeToString()])]
    return b"".join([*parts, model])


def model_fields(fingerprint: str, signature: str) -> bytes:
    """The fields of every response that say which model made it; they have the same numbers in each."""
    return pb.ScoreResponse(fingerprint=fingerprint, signature=signature).SerializeToString()


def in_stream(name: str, response: bytes) -> bytes:
    """A response as one of a stream, with the id of its request."""
    return b"".join([pb.ScoreStreamResponse(id=name).SerializeToString(), *_field(2, [response])])


def _scores(scores: Sequence[PairScore | RpcError]) -> Iterator[bytes]:
    """The scores of a response, or of a group."""
    for start in range(0, len(scores), _AT_A_TIME):
        part = scores[start : start + _AT_A_TIME]
        if not any(isinstance(score, PairScore) and score.attention is not None for score in part):
            piece = pb.GroupScores()
            add = piece.scores.add
            for score in part:
                if isinstance(score, PairScore) and not score.word_log_probs:  # as most are
                    log_prob, unknown_source, unknown_target, *_ = score
                    add(log_prob=log_prob, unknown_source_words=unknown_source, unknown_target_words=unknown_target)
                else:
                    add(**_values(score))
            yield piece.SerializeToString()
            continue
        for score in part:
            yield from _field(_ITEMS, [pb.PairScore(**_values(score)).SerializeToString(), *_weights(score)])


def _values(score: PairScore | RpcError) -> dict[str, Any]:
    """Of a ``PairScore`` of the contract, without its attention. What is empty is left out: a list costs a block."""
    if isinstance(score, RpcError):
        return {"error": to_error(score)}
    values: dict[str, Any] = {
        "log_prob": score.log_prob,
        "unknown_source_words": score.unknown_source,
        "unknown_target_words": score.unknown_target,
    }
    if score.word_log_probs:
        values["word_log_probs"] = score.word_log_probs
    if score.attention is not None and len(score.attention):
        values["attention_columns"] = len(score.attention[0])
    return values


def _weights(score: PairScore | RpcError) -> list[bytes]:
    if isinstance(score, RpcError) or score.attention is None:
        return []
    return _packed(pb.PairScore.ATTENTION_FIELD_NUMBER, score.attention)


def _translations(nbest: Sequence[Translation] | RpcError, texts: Sequence[str], *, attention: bool) -> Iterator[bytes]:
    """The n-best list of one sentence; ``texts`` is what is shown of each."""
    if isinstance(nbest, RpcError):
        yield pb.Translations(error=to_error(nbest)).SerializeToString()
        return
    for one, text in zip(nbest, texts, strict=True):
        parts = [_translation(one, text).SerializeToString()]
        if attention and one.attention is not None:
            parts.append(_alignment(hard_points(one.attention, one.aligns)))
            parts += _packed(pb.Translation.ATTENTION_FIELD_NUMBER, one.attention)
        yield from _field(_ITEMS, parts)


def _translation(found: Translation, text: str) -> pb.Translation:
    """Without its attention."""
    return pb.Translation(
        text=utf8(text),
        log_prob=found.log_prob,
        score=found.score,
        word_log_probs=found.word_log_probs,
        words=map(utf8, found.words),
        source_words=found.source_words,
        systems=found.systems,
        degraded=found.degraded,
    )


def _alignment(points: Points) -> bytes:
    piece = pb.Translation()
    for source, target in points:
        piece.alignment.add(source=source, target=target)
    return piece.SerializeToString()


def _packed(number: int, weights: Any) -> list[bytes]:
    """A field of packed floats."""
    return _field(number, [np.asarray(weights, dtype="<f4").tobytes()])


def _field(number: int, parts: Iterable[bytes]) -> list[bytes]:
    """A field with the bytes of these parts."""
    content = list(parts)
    return [head(number, sum(map(len, content))), *content]
