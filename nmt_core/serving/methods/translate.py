"""``Translate``: from the texts of a request to the n-best lists, or samples, of its answer."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

from nmt_core.inference.output.finish import Translation
from nmt_core.inference.search.config import DecodingConfig, SamplingConfig
from nmt_core.serving.errors import Refusal, not_supported
from nmt_core.serving.limits import Limits
from nmt_core.serving.methods import answers
from nmt_core.serving.methods.costs import check_cost, translation_cost
from nmt_core.serving.methods.options import decoding_config, sample_problem, searched_as
from nmt_core.serving.methods.plan import Plan, Words, make_plan
from nmt_core.serving.methods.texts import check_items, read_texts, words_of, written_texts
from nmt_core.serving.models.devices import Route
from nmt_core.serving.models.search import SearchItem
from nmt_core.serving.models.served import Decoding, Key, SampleItem, Sampling, ServedModel
from nmt_core.v1 import nmt_pb2 as pb


def translate(request: pb.TranslateRequest, route: Route, limits: Limits) -> Plan:
    """The plan of a ``TranslateResponse``. Raises Refusal."""
    model = route.model
    config = decoding_config(request, model.defaults, limits, fixed=model.kind == "hybrid")
    _check_supported(request, route, config)
    size = searched_as(config)
    check_items(limits, len(request.texts), "texts", answers=size.nbest)
    texts = read_texts(request.texts, route, limits, raw=request.raw)
    words = words_of(texts)
    attention = request.with_attention or _replaces(request, model)
    answered = request.with_attention and model.attends
    sizes = [(n, 4 * len(text)) for n, text in zip(words, texts, strict=True) if not isinstance(text, Refusal)]
    cost = translation_cost(sizes, size, model.proportions, answered=answered, kept=attention)
    check_cost(limits, answer=cost.answer, steps=cost.steps)
    key, items = _work(route, config, attention, texts)
    tokens = [(count + 2) * size.beam for count in words]
    reply = functools.partial(_reply, request, route, sum(words))
    return make_plan(key, items, tokens, priority=request.priority, cost=cost, reply=reply)


def _replaces(request: pb.TranslateRequest, model: ServedModel) -> bool:
    """Whether ``<unk>`` is replaced in the reply; models that copy do it in any case."""
    return request.replace_unknown and not model.copies


def _check_supported(request: pb.TranslateRequest, route: Route, config: DecodingConfig | SamplingConfig) -> None:
    """Raises Refusal for what the model cannot do about unknown words."""
    model = route.model
    if model.copies and config.forbid_unknown:
        raise not_supported(f"forbid_unknown: {route.name!r} writes unknown words as places of the source")
    if not request.replace_unknown:
        return
    if not (model.attends or model.copies):
        raise not_supported(f"replace_unknown needs a model with attention; {route.name!r} has none")
    if model.spells:
        raise not_supported(f"replace_unknown is for models that write <unk>; {route.name!r} spells unknown words")


def _work(
    route: Route, config: DecodingConfig | SamplingConfig, attention: bool, texts: Sequence[str | Refusal]
) -> tuple[Key, list[Any]]:
    """What is done with the texts, and each as an item of it, or why it is none."""
    if isinstance(config, DecodingConfig):
        items = [text if isinstance(text, Refusal) else SearchItem(text, config) for text in texts]
        return Decoding(route.model, attention), items
    if route.model.sampler is None:
        raise not_supported(f"samples of the model {route.name!r} cannot be drawn")
    drawn = [
        text if isinstance(text, Refusal) else sample_problem(config, text) or SampleItem(text, config)
        for text in texts
    ]
    return Sampling(route.model, attention), drawn


def _reply(
    request: pb.TranslateRequest, route: Route, read: int, found: Sequence[Sequence[Translation] | Refusal]
) -> tuple[bytes, Words]:
    """The ``TranslateResponse`` with the texts of all translations as the request wants them."""
    model, words = route.model, {"read": read}
    nbests = [[] if isinstance(one, Refusal) else one for one in found]
    words["written"] = sum(len(one[0].words) for one in nbests if one)
    if _replaces(request, model):
        replaced = [[one.with_unknown_replaced(model.unknowns) for one in nbest] for nbest in nbests]
        shown = [[text for text, _ in one] for one in replaced]
        words["copied"] = sum(counts.copied for one in replaced for _, counts in one)
        words["translated"] = sum(counts.translated for one in replaced for _, counts in one)
    else:
        shown = [[one.text for one in nbest] for nbest in nbests]
    if request.raw:
        shown = written_texts(shown, route)
    answered = request.with_attention and model.attends
    return answers.translate_answer(found, shown, answered, model.fields), words
