"""``Score``: log-probabilities of pairs, as the model reads them: checked, cut into the model's words, and counted.

Words of another form may become many times as many pieces; what counts, for the limits and for the cost, are the
pieces. A text that stands in many pairs is looked at once.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from nmt_core.base.errors import ConfigError
from nmt_core.base.interfaces import PairScore, SentencePair
from nmt_core.base.pauses import yield_point
from nmt_core.inference.scoring.forms import FormReader, TextForm
from nmt_core.serving.errors import RpcError, invalid, not_supported
from nmt_core.serving.limits import Limits
from nmt_core.serving.methods.answers import score_answer
from nmt_core.serving.methods.costs import score_cost
from nmt_core.serving.methods.plan import Plan, Words, make_plan
from nmt_core.serving.methods.texts import ReadText, check_items, read_text
from nmt_core.serving.models.devices import Route
from nmt_core.serving.models.served import Scoring, ServedModel
from nmt_core.v1 import nmt_pb2 as pb


def score(request: pb.ScoreRequest, route: Route, limits: Limits) -> Plan:
    """The plan of a ``ScoreResponse``. Raises RpcError."""
    count = len(request.pairs) + sum(len(group.targets) for group in request.groups)
    check_items(limits, max(count, len(request.groups)), "pairs")
    key = Scoring(route.model, request.per_word, request.with_attention and route.model.attends)
    reply = functools.partial(_reply, request, route.model.fields)
    return plan_pairs(request, groups_of(request), "pairs", key, limits, reply)


def _reply(request: pb.ScoreRequest, model: bytes, scores: Sequence[PairScore | RpcError]) -> bytes:
    return score_answer(scores, request, model)


def groups_of(request: pb.ScoreRequest) -> Iterator[tuple[str, Iterable[str]]]:
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
_Score = PairScore | RpcError


def plan_pairs(
    request: pb.ScoreRequest | pb.RerankRequest,
    groups: Iterable[tuple[str, Iterable[str]]],
    field: str,
    key: Scoring,
    limits: Limits,
    reply: Callable[[Sequence[_Score]], bytes],
) -> Plan:
    """The plan for the scores of every source and its targets. Raises RpcError.

    ``reply`` makes the response of the scores.
    """
    reader = _form_reader(key.model, request.form)
    pairs = list(read_pairs(groups, field, limits, reader, key.model.source_factors))
    items = [one if isinstance(one, RpcError) else SentencePair(one.source.text, one.target.text) for one in pairs]
    sizes = [None if isinstance(one, RpcError) else (one.source.words, one.target.words) for one in pairs]
    tokens = [0 if size is None else sum(size) + 2 for size in sizes]
    scored = [size for size in sizes if size is not None]
    cost = score_cost(scored, per_word=key.per_word, attention=key.attention)
    words = {"scored": sum([target for _, target in scored])}

    def reply_in_form(scores: Sequence[_Score]) -> tuple[bytes, Words]:
        return reply(scores if reader is None else list(restored(scores, pairs, reader))), words

    return make_plan(key, items, tokens, priority=request.priority, cost=cost, limits=limits, reply=reply_in_form)


def _form_reader(model: ServedModel, number: int) -> FormReader | None:
    """What reads the texts of a request, None for words as they are. Raises RpcError where the model cannot."""
    if number not in _TEXT_FORMS:
        raise invalid("form", f"there is no form of text {number}")
    try:
        return model.reader_of(_TEXT_FORMS[number])
    except ConfigError as error:
        raise not_supported(str(error)) from error


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
