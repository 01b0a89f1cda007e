"""``Encode``: the vectors of phrases."""

from __future__ import annotations

from nmt_core.serving.backend import Backend, words_of
from nmt_core.serving.checks import check_items
from nmt_core.serving.dispatch import ask_for, do
from nmt_core.serving.errors import not_supported
from nmt_core.serving.methods import answers
from nmt_core.serving.methods.costs import Cost
from nmt_core.serving.models.served import Encoding
from nmt_core.v1 import nmt_pb2 as pb


async def encode(request: pb.EncodeRequest, deadline: float | None, backend: Backend) -> bytes:
    """The response, an ``EncodeResponse``. Raises Refusal."""
    place = backend.devices.find(request.model)
    if place.model.encode is None:
        raise not_supported(f"the model {place.name!r} has no single vector of a phrase; an rnnencdec has")
    check_items(backend.limits, len(request.texts), "texts")
    answer = (4 * place.model.vector_size + 64) * len(request.texts)
    backend.accept(Cost(answer, 10 * answer, len(request.texts)))
    texts = await backend.texts.tokenized(place, request.texts, raw=request.raw)
    ask = ask_for(Encoding(place.model), request.priority, len(texts), deadline)
    words = await backend.texts.run(words_of, texts)
    found = await do(backend.texts, place, ask, texts, [count + 1 for count in words])
    await backend.texts.run(backend.count_errors, place.name, found)
    return backend.checked(await backend.texts.run(answers.encode_answer, found, place.model.fields))
