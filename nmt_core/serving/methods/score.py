"""``Score`` and ``Rerank``: log-probabilities of pairs, and n-best lists in the order of weighted sums with them."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Sequence

from nmt_core.base.errors import ConfigError
from nmt_core.base.interfaces import PairScore
from nmt_core.inference.scoring.forms import FormReader, TextForm
from nmt_core.serving.backend import Backend
from nmt_core.serving.checks import check_items
from nmt_core.serving.client import requests as convert
from nmt_core.serving.dispatch import ask_for, do
from nmt_core.serving.errors import Refusal, invalid, not_supported
from nmt_core.serving.methods import answers
from nmt_core.serving.models.devices import Place
from nmt_core.serving.models.served import Scoring, ServedModel
from nmt_core.serving.pairs import ReadPair, read_pairs, restored, scoring_work
from nmt_core.serving.ranking import check_columns, ranking
from nmt_core.v1 import nmt_pb2 as pb

_TEXT_FORMS: dict[int, TextForm] = {
    pb.TEXT_FORM_UNSPECIFIED: "prepared",
    pb.TEXT_FORM_SURFACE: "surface",
    pb.TEXT_FORM_RAW: "raw",
}
_Pairs = Sequence[ReadPair | Refusal]
_Scores = list[PairScore | Refusal]


async def score(request: pb.ScoreRequest, deadline: float | None, backend: Backend) -> bytes:
    """The response, a ``ScoreResponse``. Raises Refusal."""
    place, limits = backend.devices.find(request.model), backend.limits
    count = len(request.pairs) + sum(len(group.targets) for group in request.groups)
    check_items(limits, max(count, len(request.groups)), "pairs")
    reader = _form_reader(place.model, request.form)
    read = read_pairs(convert.groups_of(request), "pairs", limits, reader, place.model.source_factors)
    pairs = await backend.texts.listed(read, small=reader is None)
    key = Scoring(place.model, request.per_word, request.with_attention and place.model.attends)
    scores = await _scores(backend, place, key, pairs, priority=request.priority, deadline=deadline)
    if reader is not None:
        scores = await backend.texts.listed(restored(scores, pairs, reader), small=False)
    return backend.checked(await backend.texts.run(answers.score_answer, scores, request, place.model.fields))


async def rerank(request: pb.RerankRequest, deadline: float | None, backend: Backend) -> bytes:
    """The response, a ``RerankResponse``. Raises Refusal."""
    place, limits = backend.devices.find(request.model), backend.limits
    count = sum(len(one.hypotheses) for one in request.lists)
    check_items(limits, max(count, len(request.lists)), "lists")
    await backend.texts.run(check_columns, request, limits)
    reader = _form_reader(place.model, request.form)
    groups = ((one.source, (each.target for each in one.hypotheses)) for one in request.lists)
    read = read_pairs(groups, "lists", limits, reader, place.model.source_factors)
    pairs = await backend.texts.listed(read, small=reader is None)
    scores = await _scores(backend, place, Scoring(place.model), pairs, priority=request.priority, deadline=deadline)
    return backend.checked(await backend.texts.run(_rerank_answer, request, scores, place.model.fields))


def _form_reader(model: ServedModel, number: int) -> FormReader | None:
    """What reads the texts of a request, None for words as they are. Raises Refusal where the model cannot."""
    if number not in _TEXT_FORMS:
        raise invalid("form", f"there is no form of text {number}")
    try:
        return model.reader_of(_TEXT_FORMS[number])
    except ConfigError as error:
        raise not_supported(str(error)) from error


async def _scores(
    backend: Backend, place: Place, key: Scoring, pairs: _Pairs, *, priority: int, deadline: float | None
) -> _Scores:
    """As the model reads the pairs."""
    count = functools.partial(scoring_work, per_word=key.per_word, attention=key.attention)
    work = await backend.texts.run(count, pairs)
    backend.accept(work.cost)
    found = await do(backend.texts, place, ask_for(key, priority, len(pairs), deadline), work.items, work.tokens)
    backend.count_words(place.name, "scored", [work.words])
    await backend.texts.run(backend.count_errors, place.name, found)
    return found


def _rerank_answer(request: pb.RerankRequest, scores: Sequence[PairScore | Refusal], model: bytes) -> bytes:
    ends = list(itertools.accumulate(len(one.hypotheses) for one in request.lists))
    parts = (scores[start:end] for start, end in itertools.pairwise([0, *ends]))
    rankings = (ranking(one, part, request) for one, part in zip(request.lists, parts, strict=True))
    return answers.rerank_answer(rankings, model)
