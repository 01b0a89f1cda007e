"""``Score``: log-probabilities of pairs, as the model reads them: checked, cut into the model's words, and counted.

Words of another form may become many times as many pieces; what counts, for the limits and for the cost, are the
pieces. A text that stands in many pairs is looked at once.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from nmt_core.base.errors import ConfigError
from nmt_core.base.interfaces import PairScore, SentencePair
from nmt_core.base.pauses import yield_point
from nmt_core.inference.scoring.forms import FormReader, TextForm
from nmt_core.serving.errors import RpcError, invalid, not_supported
from nmt_core.serving.limits import Limits
from nmt_core.serving.methods.answers import score_answer
from nmt_core.serving.methods.costs import Cost, check_cost, count_words, score_cost
from nmt_core.serving.methods.plan import Plan, Words, make_plan
from nmt_core.serving.methods.texts import check_items, source_problem, text_problem
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


class ReadText(NamedTuple):
    """``text`` is what the model reads, of ``words`` words; ``reading`` says where these come from."""

    text: str
    words: int
    reading: Any


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
    work = scoring_work(pairs, per_word=key.per_word, attention=key.attention)
    check_cost(limits, answer=work.cost.answer, steps=work.cost.steps)
    words = {"scored": work.words}

    def reply_in_form(scores: Sequence[_Score]) -> tuple[bytes, Words]:
        return reply(scores if reader is None else list(restored(scores, pairs, reader))), words

    return make_plan(key, work.items, work.tokens, priority=request.priority, cost=work.cost, reply=reply_in_form)


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
            first = sources[source] = _read(source, field, limits, read_source, factors)
        for text in texts:
            yield_point()
            second = first if isinstance(first, RpcError) else targets.get(text)
            if second is None:
                second = targets[text] = _read(text, field, limits, read_target, 0)
            if isinstance(second, RpcError):
                yield second
            elif not isinstance(first, RpcError):
                yield ReadPair(first, second)


def _read(
    text: str, field: str, limits: Limits, read: Callable[[str], Any] | None, factors: int
) -> ReadText | RpcError:
    short = len(text) <= limits.words and len(text) <= limits.characters  # most are, and may be any text
    if (factors or not short) and (problem := source_problem(limits, text, field, factors=factors)):
        return problem
    if read is None:
        return ReadText(text, count_words(text), None)
    reading = read(text)
    problem = text_problem(limits, reading.text, field, what="the text as the model reads it")
    return problem or ReadText(reading.text, max(count_words(text), count_words(reading.text)), reading)


def restored(
    scores: Sequence[PairScore | RpcError], pairs: Sequence[ReadPair | RpcError], reader: FormReader | None
) -> Iterator[PairScore | RpcError]:
    """The scores with their numbers for the words of the request."""
    for score, pair in zip(scores, pairs, strict=True):
        yield_point()
        if reader is None or isinstance(score, RpcError) or isinstance(pair, RpcError):
            yield score
        else:
            yield reader.restore(score, pair.source.reading, pair.target.reading)


class ScoringWork(NamedTuple):
    """What a device is asked for pairs, how many tokens each has, and what they cost; ``words`` are target words."""

    items: list[SentencePair | RpcError]
    tokens: list[int]
    cost: Cost
    words: int


def scoring_work(pairs: Sequence[ReadPair | RpcError], *, per_word: bool, attention: bool) -> ScoringWork:
    """Of these pairs."""
    items: list[SentencePair | RpcError] = []
    tokens: list[int] = []
    lengths: list[tuple[int, int]] = []
    for pair in pairs:
        if isinstance(pair, RpcError):
            items.append(pair)
            tokens.append(0)
            continue
        (source, source_words, _), (target, target_words, _) = pair
        items.append(SentencePair(source, target))
        tokens.append(source_words + target_words + 2)
        lengths.append((source_words, target_words))
    cost = score_cost(lengths, per_word=per_word, attention=attention)
    return ScoringWork(items, tokens, cost, sum([words for _, words in lengths]))
