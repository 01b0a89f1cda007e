"""``Score``: log-probabilities of pairs, as the model reads them: checked, cut into the model's words, and counted.

Words of another form may become many times as many pieces; what counts, for the limits and for the cost, are the
pieces. A text that stands in many pairs is looked at once.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from nmt_core.base.interfaces import PairScore, SentencePair
from nmt_core.base.pauses import yield_point
from nmt_core.inference.scoring.forms import FormReader, TextForm
from nmt_core.serving.engine.work import Item
from nmt_core.serving.errors import RpcError, invalid, to_error
from nmt_core.serving.limits import Limits
from nmt_core.serving.methods.plan import Plan, ReadText, Words, check_items, make_plan, read_text, score_cost
from nmt_core.serving.models.device import Route
from nmt_core.serving.models.served import Key
from nmt_core.serving.wire import ITEMS, delimited, floats
from nmt_core.v1 import nmt_pb2 as pb


def score(request: pb.ScoreRequest, route: Route, limits: Limits) -> Plan:
    """The plan of a ``ScoreResponse``. Raises RpcError."""
    count = len(request.pairs) + sum(len(group.targets) for group in request.groups)
    check_items(limits, max(count, len(request.groups)), "pairs")
    attention = request.with_attention and route.model.attends
    key = Key(route.model, "score", attention=attention, per_word=request.per_word)
    return plan_pairs(request, _groups(request), "pairs", key, limits, functools.partial(score_answer, request))


def score_answer(request: pb.ScoreRequest, scores: Sequence[_Score]) -> Iterator[bytes]:
    """A response's scores: of its pairs, and then of each group."""
    start = len(request.pairs)
    yield from _scores(scores[:start])
    for group in request.groups:
        yield from delimited(_GROUPS, _scores(scores[start : start + len(group.targets)]))
        start += len(group.targets)


def _scores(scores: Sequence[_Score]) -> Iterator[bytes]:
    """The scores of a response, or of a group."""
    for start in range(0, len(scores), _AT_A_TIME):
        part = scores[start : start + _AT_A_TIME]
        if any(isinstance(score, PairScore) and score.attention is not None for score in part):
            for score in part:
                message = pb.PairScore(**_values(score)).SerializeToString()
                yield from delimited(ITEMS, [message, *_weights(score)])
        else:
            piece = pb.GroupScores()
            add = piece.scores.add
            for score in part:
                if isinstance(score, PairScore) and not score.word_log_probs:  # as most are
                    log_prob, unknown_source, unknown_target, *_ = score
                    add(log_prob=log_prob, unknown_source_words=unknown_source, unknown_target_words=unknown_target)
                else:
                    add(**_values(score))
            yield piece.SerializeToString()


def _values(score: _Score) -> dict[str, Any]:
    """Of a ``PairScore`` of the contract, without its attention. What is empty is left out: a list costs a block."""
    if isinstance(score, RpcError):
        return {"error": to_error(score)}
    log_prob, unknown_source, unknown_target, word_log_probs, attention, *_ = score
    values: dict[str, Any] = {
        "log_prob": log_prob,
        "unknown_source_words": unknown_source,
        "unknown_target_words": unknown_target,
    }
    if word_log_probs:
        values["word_log_probs"] = word_log_probs
    if attention is not None and len(attention):
        values["attention_columns"] = len(attention[0])
    return values


def _weights(score: _Score) -> list[bytes]:
    if isinstance(score, RpcError) or score.attention is None:
        return []
    return floats(pb.PairScore.ATTENTION_FIELD_NUMBER, score.attention)


def _groups(request: pb.ScoreRequest) -> Iterator[tuple[str, Iterable[str]]]:
    """Every source and its targets: first the pairs of a request, then its groups."""
    for pair in request.pairs:
        yield pair.source, (pair.target,)
    for group in request.groups:
        yield group.source, group.targets


class ReadPair(NamedTuple):
    """A pair, as the model reads it."""

    source: ReadText
    target: ReadText


_TEXT_FORMS: dict[int, TextForm] = {
    pb.TEXT_FORM_UNSPECIFIED: "prepared",
    pb.TEXT_FORM_SURFACE: "surface",
    pb.TEXT_FORM_RAW: "raw",
}
_AT_A_TIME = 100  # scores of a piece
_GROUPS = 2  # of an answer
_Score = PairScore | RpcError


def plan_pairs(
    request: pb.ScoreRequest | pb.RerankRequest,
    groups: Iterable[tuple[str, Iterable[str]]],
    field: str,
    key: Key,
    limits: Limits,
    reply: Callable[[Sequence[_Score]], Iterable[bytes]],
) -> Plan:
    """The plan for the scores of every source and its targets. Raises RpcError.

    ``reply`` makes the response of the scores.
    """
    if request.form not in _TEXT_FORMS:
        raise invalid("form", f"there is no form of text {request.form}")
    reader = key.model.reader_of(_TEXT_FORMS[request.form])
    pairs = list(read_pairs(groups, field, limits, reader, key.model.source_factors))
    sizes = [(one.source.words, one.target.words) for one in pairs if not isinstance(one, RpcError)]
    cost = score_cost(sizes, per_word=key.per_word, attention=key.attention)
    items = [one if isinstance(one, RpcError) else _item(*one) for one in pairs]

    def reply_in_form(scores: Sequence[_Score], words: Words) -> Iterable[bytes]:
        words["scored"] = sum([target for _, target in sizes])
        return reply(scores if reader is None else list(restored(scores, pairs, reader)))

    return make_plan(key, items, priority=request.priority, cost=cost, limits=limits, reply=reply_in_form)


def _item(source: ReadText, target: ReadText) -> Item:
    return Item(SentencePair(source.text, target.text), source.words + target.words + 2)


def read_pairs(
    groups: Iterable[tuple[str, Iterable[str]]],
    field: str,
    limits: Limits,
    reader: FormReader | None,
    factors: int = 0,
) -> Iterator[ReadPair | RpcError]:
    """The pairs of every source and its targets, or what is wrong with them.

    ``reader`` reads another form of text; source words have so many ``factors`` beside them.
    """
    read_source, read_target = (None, None) if reader is None else (reader.read_source, reader.read_target)
    targets: dict[str, ReadText | RpcError] = {}
    sources = targets if read_source is read_target and not factors else {}
    for source, texts in groups:
        yield_point()
        if (first := sources.get(source)) is None:
            first = sources[source] = read_text(source, field, limits, factors=factors, read=read_source)
        for text in texts:
            yield_point()
            second = first if isinstance(first, RpcError) else targets.get(text)
            if second is None:
                second = targets[text] = read_text(text, field, limits, read=read_target)
            if isinstance(second, RpcError):
                yield second
            elif not isinstance(first, RpcError):
                yield ReadPair(first, second)


def restored(
    scores: Sequence[PairScore | RpcError], pairs: Sequence[ReadPair | RpcError], reader: FormReader
) -> Iterator[PairScore | RpcError]:
    """The scores with their numbers for the words of the request."""
    for score, pair in zip(scores, pairs, strict=True):
        yield_point()
        if isinstance(score, RpcError) or isinstance(pair, RpcError):
            yield score
        else:
            yield reader.restore(score, pair.source.reading, pair.target.reading)
