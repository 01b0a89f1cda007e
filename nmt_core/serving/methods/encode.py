"""``Encode``: the vectors of phrases."""

from __future__ import annotations

import functools
from collections.abc import Sequence

from nmt_core.serving.errors import RpcError, not_supported
from nmt_core.serving.limits import Limits
from nmt_core.serving.methods.answers import encode_answer
from nmt_core.serving.methods.costs import Cost, check_cost
from nmt_core.serving.methods.plan import Plan, Words, make_plan
from nmt_core.serving.methods.texts import check_items, read_texts, words_of
from nmt_core.serving.models.devices import Route
from nmt_core.serving.models.served import Encoding, Vector
from nmt_core.v1 import nmt_pb2 as pb


def encode(request: pb.EncodeRequest, route: Route, limits: Limits) -> Plan:
    """The plan of an ``EncodeResponse``. Raises RpcError."""
    if route.model.encode is None:
        raise not_supported(f"the model {route.name!r} has no single vector of a phrase; an rnnencdec has")
    check_items(limits, len(request.texts), "texts")
    size = (4 * route.model.vector_size + 64) * len(request.texts)
    cost = Cost(size, 10 * size, len(request.texts))
    check_cost(limits, answer=cost.answer, steps=cost.steps)
    texts = read_texts(request.texts, route, limits, raw=request.raw)
    tokens = [count + 1 for count in words_of(texts)]
    reply = functools.partial(_reply, route.model.fields)
    return make_plan(Encoding(route.model), texts, tokens, priority=request.priority, cost=cost, reply=reply)


def _reply(model: bytes, found: Sequence[Vector | RpcError]) -> tuple[bytes, Words]:
    return encode_answer(found, model), {}
