"""``Encode``: the vectors of phrases."""

from __future__ import annotations

import functools
from collections.abc import Sequence

from nmt_core.serving.errors import RpcError, not_supported
from nmt_core.serving.limits import Limits
from nmt_core.serving.methods.answers import encode_answer
from nmt_core.serving.methods.costs import Cost
from nmt_core.serving.methods.plan import Plan, Words, make_plan
from nmt_core.serving.methods.texts import check_items, read_texts
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
    texts = read_texts(request.texts, route, limits, raw=request.raw)
    items = [one if isinstance(one, RpcError) else one.text for one in texts]
    tokens = [0 if isinstance(one, RpcError) else one.words + 1 for one in texts]
    reply = functools.partial(_reply, route.model.fields)
    key = Encoding(route.model)
    return make_plan(key, items, tokens, priority=request.priority, cost=cost, limits=limits, reply=reply)


def _reply(model: bytes, found: Sequence[Vector | RpcError]) -> tuple[bytes, Words]:
    return encode_answer(found, model), {}
