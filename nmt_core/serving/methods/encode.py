"""``Encode``: the vectors of phrases."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from nmt_core.serving.engine.work import Item
from nmt_core.serving.errors import RpcError, not_supported, to_error
from nmt_core.serving.limits import Limits
from nmt_core.serving.methods.plan import Cost, Plan, Words, check_items, make_plan, read_texts
from nmt_core.serving.models.device import Route
from nmt_core.serving.models.served import Key, Vector
from nmt_core.serving.wire import ITEMS, delimited
from nmt_core.v1 import nmt_pb2 as pb


def encode(request: pb.EncodeRequest, route: Route, limits: Limits) -> Plan:
    """The plan of an ``EncodeResponse``. Raises RpcError."""
    model = route.model
    if model.encode is None:
        raise not_supported(f"the model {route.name!r} has no single vector of a phrase; an rnnencdec has")
    check_items(limits, len(request.texts), "texts")
    size = (4 * model.description.vector_size + 64) * len(request.texts)
    cost = Cost(size, 10 * size, len(request.texts))
    texts = read_texts(request.texts, route, limits, raw=request.raw)
    items = [one if isinstance(one, RpcError) else Item(one.text, one.words + 1) for one in texts]
    return make_plan(Key(model, "encode"), items, priority=request.priority, cost=cost, limits=limits, reply=_reply)


def _reply(found: Sequence[Vector | RpcError], words: Words) -> Iterator[bytes]:
    for one in found:
        if isinstance(one, RpcError):
            vector = pb.PhraseVector(error=to_error(one))
        else:
            vector = pb.PhraseVector(values=one[0], unknown_words=one[1])
        yield from delimited(ITEMS, [vector.SerializeToString()])
