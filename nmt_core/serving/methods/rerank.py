"""``Rerank``: n-best lists in the order of weighted sums of their features and the model's scores."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator, Sequence

import numpy as np

from nmt_core.base.interfaces import PairScore
from nmt_core.base.messages import counted
from nmt_core.base.pauses import yield_point
from nmt_core.serving.errors import RpcError, invalid, to_error
from nmt_core.serving.limits import Limits
from nmt_core.serving.methods.plan import Plan, check_items
from nmt_core.serving.methods.score import plan_pairs
from nmt_core.serving.models.device import Route
from nmt_core.serving.models.served import Key
from nmt_core.serving.wire import ITEMS, delimited
from nmt_core.v1 import nmt_pb2 as pb

_LARGEST = 1e30  # of weights and values: sums of their products are finite


def rerank(request: pb.RerankRequest, route: Route, limits: Limits) -> Plan:
    """The plan of a ``RerankResponse``. Raises RpcError."""
    count = sum(len(one.hypotheses) for one in request.lists)
    check_items(limits, max(count, len(request.lists)), "lists")
    check_columns(request, limits)
    groups = ((one.source, (each.target for each in one.hypotheses)) for one in request.lists)
    reply = functools.partial(_reply, request)
    return plan_pairs(request, groups, "lists", Key(route.model, "score"), limits, reply)


def _reply(request: pb.RerankRequest, scores: Sequence[PairScore | RpcError]) -> Iterator[bytes]:
    start = 0
    for one in request.lists:
        end = start + len(one.hypotheses)
        yield from delimited(ITEMS, [ranking(one, scores[start:end], request).SerializeToString()])
        start = end


def check_columns(request: pb.RerankRequest, limits: Limits) -> None:
    """Every hypothesis has a value for every column, and all numbers can be reckoned with. Raises RpcError."""
    if len(request.columns) > limits.columns:
        raise invalid("columns", f"{len(request.columns)} columns; at most {limits.columns}", reason="TOO_MANY_ITEMS")
    for field, weights in (
        ("model_weight", [request.model_weight]),
        ("columns", [one.weight for one in request.columns]),
    ):
        if not _usable(weights):
            raise invalid(field, f"{field}: weights must be finite numbers of at most {_LARGEST:g}")
    for number, one in enumerate(request.lists):
        for place, hypothesis in enumerate(one.hypotheses):
            field = f"lists[{number}].hypotheses[{place}].values"
            if len(hypothesis.values) != len(request.columns):
                numbers, columns = counted(len(hypothesis.values), "number"), counted(len(request.columns), "column")
                problem = f"{field} has {numbers} for {columns}"
                raise invalid(field, problem)
            if not _usable(hypothesis.values):
                raise invalid(field, f"{field}: values must be finite numbers of at most {_LARGEST:g}")


def _usable(numbers: Sequence[float]) -> bool:
    if len(numbers) < 20:
        return all(abs(number) <= _LARGEST for number in numbers)
    return bool(np.all(np.abs(np.array(numbers)) <= _LARGEST))


def ranking(one: pb.NbestList, scores: Sequence[PairScore | RpcError], request: pb.RerankRequest) -> pb.Ranking:
    """The hypotheses in order of their totals, those without one last."""
    yield_point()
    weights = [column.weight for column in request.columns]
    ranked = []
    for position, (hypothesis, score) in enumerate(zip(one.hypotheses, scores, strict=True)):
        if isinstance(score, RpcError):
            ranked.append(pb.RankedHypothesis(position=position, error=to_error(score)))
            continue
        products = [weight * value for weight, value in zip(weights, hypothesis.values, strict=True)]
        total = math.fsum([*products, request.model_weight * score.log_prob])
        ranked.append(pb.RankedHypothesis(position=position, total=total, log_prob=score.log_prob))
    ranked.sort(key=lambda each: (each.HasField("error"), -each.total))
    return pb.Ranking(hypotheses=ranked[: request.best or None])
