"""``Translate``: from the texts of a request to the n-best lists of its answer."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterator, Sequence
from typing import Any

from nmt_core.base.errors import NmtError
from nmt_core.base.words import utf8
from nmt_core.inference.output.alignment import hard_points
from nmt_core.inference.output.finish import Translation
from nmt_core.inference.search.config import DecodingConfig
from nmt_core.serving.engine.work import Item
from nmt_core.serving.errors import RpcError, invalid, not_supported, to_error
from nmt_core.serving.limits import Limits
from nmt_core.serving.methods.plan import (
    Plan,
    ReadText,
    Words,
    check_items,
    make_plan,
    read_texts,
    translation_cost,
    written_texts,
)
from nmt_core.serving.models.device import Route
from nmt_core.serving.models.search import SearchItem
from nmt_core.serving.models.served import Key
from nmt_core.serving.wire import ITEMS, delimited, floats
from nmt_core.v1 import nmt_pb2 as pb


def translate(request: pb.TranslateRequest, route: Route, limits: Limits) -> Plan:
    """The plan of a ``TranslateResponse``. Raises RpcError."""
    model = route.model
    _check_supported(request, route)
    config = decoding_config(request, model.defaults, limits)
    check_items(limits, len(request.texts), "texts", answers=config.nbest)
    texts = read_texts(request.texts, route, limits, raw=request.raw)
    sizes = [(one.words, 4 * len(one.text)) for one in texts if not isinstance(one, RpcError)]
    replaces = request.replace_unknown and not model.copies  # models that copy do it in any case
    attention, answered = request.with_attention or replaces, request.with_attention and model.attends
    cost = translation_cost(sizes, config, model.proportions, answered=answered, kept=attention)
    items = [one if isinstance(one, RpcError) else _item(one, config) for one in texts]
    key = Key(model, "translate", attention)
    reply = functools.partial(_reply, request, route, replaces=replaces, read=sum([words for words, _ in sizes]))
    return make_plan(key, items, priority=request.priority, cost=cost, limits=limits, reply=reply)


def _item(text: ReadText, config: DecodingConfig) -> Item:
    return Item(SearchItem(text.text, config), (text.words + 2) * config.beam)


def _check_supported(request: pb.TranslateRequest, route: Route) -> None:
    """Raises RpcError for what the request wants and the model cannot do, such as options of a hybrid's search.

    They would make other lists than the hybrid's weights were tuned with.
    """
    model = route.model
    if model.description.kind == pb.MODEL_KIND_HYBRID:
        given = [name for name in (*_BOTH, "beam") if request.HasField(name)]
        if request.forbid_unknown and not model.defaults.forbid_unknown:
            given.append("forbid_unknown")
        if given:
            raise invalid(given[0], f"a hybrid searches as it was tuned to; leave out {', '.join(given)}")
    elif (given := [name for name in _BOTH if request.HasField(name)]) and model.is_transformer:
        problem = f"{route.name!r} is a Transformer, which searches by log-probability alone"
        raise not_supported(f"{problem}; leave out {', '.join(given)}")
    if model.copies and (request.forbid_unknown or model.defaults.forbid_unknown):
        raise not_supported(f"forbid_unknown: {route.name!r} writes unknown words as places of the source")
    if not request.replace_unknown:
        return
    if not (model.attends or model.copies):
        raise not_supported(f"replace_unknown needs a model with attention; {route.name!r} has none")
    if model.spells:
        raise not_supported(f"replace_unknown is for models that write <unk>; {route.name!r} spells unknown words")


def _reply(
    request: pb.TranslateRequest,
    route: Route,
    found: Sequence[Sequence[Translation] | RpcError],
    words: Words,
    *,
    replaces: bool,
    read: int,
) -> Iterator[bytes]:
    """The ``TranslateResponse`` with the texts of all translations as the request wants them."""
    model = route.model
    nbests = [[] if isinstance(one, RpcError) else one for one in found]
    words.update(read=read, written=sum(len(one[0].words) for one in nbests if one))
    shown = [[one.text for one in nbest] for nbest in nbests]
    if replaces:
        replaced = [[one.with_unknown_replaced(model.unknowns) for one in nbest] for nbest in nbests]
        shown = [[text for text, _ in one] for one in replaced]
        for _, counts in itertools.chain.from_iterable(replaced):
            words.update(copied=counts.copied, translated=counts.translated)
    if request.raw:
        shown = written_texts(shown, route)
    return translate_answer(found, shown, attention=request.with_attention and model.attends)


def translate_answer(
    found: Sequence[Sequence[Translation] | RpcError], shown: Sequence[Sequence[str]], *, attention: bool
) -> Iterator[bytes]:
    """A ``TranslateResponse`` with these n-best lists; ``shown`` are their texts."""
    for nbest, texts in zip(found, shown, strict=True):
        if isinstance(nbest, RpcError):
            yield from delimited(ITEMS, [pb.Translations(error=to_error(nbest)).SerializeToString()])
        else:
            yield from delimited(ITEMS, _translations(nbest, texts, attention=attention))


def _translations(nbest: Sequence[Translation], texts: Sequence[str], *, attention: bool) -> Iterator[bytes]:
    """The n-best list of one sentence; ``texts`` is what is shown of each."""
    for one, text in zip(nbest, texts, strict=True):
        message = pb.Translation(
            text=utf8(text),
            log_prob=one.log_prob,
            score=one.score,
            word_log_probs=one.word_log_probs,
            words=map(utf8, one.words),
            source_words=one.source_words,
            systems=one.systems,
            degraded=one.degraded,
        )
        weights: list[bytes] = []
        if attention and one.attention is not None:
            for source, target in hard_points(one.attention, one.aligns):
                message.alignment.add(source=source, target=target)
            weights = floats(pb.Translation.ATTENTION_FIELD_NUMBER, one.attention)
        yield from delimited(ITEMS, [message.SerializeToString(), *weights])


_BOTH = ("length_normalization", "max_length_ratio")
_OPTIONS = (*_BOTH, "beam", "nbest")


def decoding_config(request: pb.TranslateRequest, defaults: DecodingConfig, limits: Limits) -> DecodingConfig:
    """The options of the request. Raises RpcError with the field at fault."""
    given: dict[str, Any] = {name: getattr(request, name) for name in _OPTIONS if request.HasField(name)}
    if request.forbid_unknown:
        given["forbid_unknown"] = True
    for name, most in (
        ("beam", limits.beam),
        ("nbest", limits.nbest),
        ("max_length_ratio", limits.length_ratio),
        ("length_normalization", limits.length_normalization),
    ):
        if name in given and not given[name] <= most:  # a NaN is no number below the limit
            raise invalid(name, f"{name} {given[name]:g}: expected a number of at most {most:g}")
    return _search_with(defaults, tuple(given.items()), limits.beam)


@functools.lru_cache(maxsize=1024)  # nearly all requests have the options of others
def _search_with(defaults: DecodingConfig, given: tuple[tuple[str, Any], ...], most: int) -> DecodingConfig:
    settings = {**defaults.to_mapping(), **dict(given)}
    if "beam" not in dict(given):
        settings["beam"] = max(settings["beam"], settings["nbest"])
    try:
        config = DecodingConfig.from_mapping(settings, origin="request")
    except NmtError as error:
        raise invalid(next((name for name in _OPTIONS if f"'{name}'" in str(error)), ""), str(error)) from error
    if config.beam > most:
        raise invalid("beam", f"a beam of {config.beam}; at most {most}")
    if config.nbest > config.beam:
        raise invalid("nbest", f"{config.nbest} best translations need a beam of at least {config.nbest}")
    return config
