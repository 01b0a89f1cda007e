"""``Score``: log-probabilities of pairs."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Sequence

from nmt_core.base.interfaces import PairScore
from nmt_core.serving.errors import Refusal
from nmt_core.serving.limits import Limits
from nmt_core.serving.methods.answers import score_answer
from nmt_core.serving.methods.pairs import plan_pairs
from nmt_core.serving.methods.plan import Plan
from nmt_core.serving.methods.texts import check_items
from nmt_core.serving.models.devices import Route
from nmt_core.serving.models.served import Scoring
from nmt_core.v1 import nmt_pb2 as pb


def score(request: pb.ScoreRequest, route: Route, limits: Limits) -> Plan:
    """The plan of a ``ScoreResponse``. Raises Refusal."""
    count = len(request.pairs) + sum(len(group.targets) for group in request.groups)
    check_items(limits, max(count, len(request.groups)), "pairs")
    key = Scoring(route.model, request.per_word, request.with_attention and route.model.attends)
    reply = functools.partial(_reply, request, route.model.fields)
    return plan_pairs(request, groups_of(request), "pairs", key, limits, reply)


def _reply(request: pb.ScoreRequest, model: bytes, scores: Sequence[PairScore | Refusal]) -> bytes:
    return score_answer(scores, request, model)


def groups_of(request: pb.ScoreRequest) -> Iterator[tuple[str, Iterable[str]]]:
    """Every source and its targets: first the pairs of a request, then its groups."""
    for pair in request.pairs:
        yield pair.source, (pair.target,)
    for group in request.groups:
        yield group.source, group.targets
