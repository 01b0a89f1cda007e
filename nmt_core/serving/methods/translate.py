"""``Translate``: from the texts of a request to the n-best lists, or samples, of its answer."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from nmt_core.base.errors import NmtError
from nmt_core.base.words import count_words
from nmt_core.inference.output.finish import Translation
from nmt_core.inference.search.config import DecodingConfig, SamplingConfig
from nmt_core.serving.errors import RpcError, invalid, not_supported
from nmt_core.serving.limits import Limits
from nmt_core.serving.methods.answers import translate_answer
from nmt_core.serving.methods.costs import translation_cost
from nmt_core.serving.methods.plan import Plan, Words, make_plan
from nmt_core.serving.methods.texts import check_items, read_texts, written_texts
from nmt_core.serving.models.devices import Route
from nmt_core.serving.models.search import SearchItem
from nmt_core.serving.models.served import Decoding, Key, SampleItem, Sampling
from nmt_core.v1 import nmt_pb2 as pb


def translate(request: pb.TranslateRequest, route: Route, limits: Limits) -> Plan:
    """The plan of a ``TranslateResponse``. Raises RpcError."""
    model = route.model
    config = decoding_config(request, model.defaults, limits, fixed=model.kind == "hybrid")
    _check_supported(request, route, config)
    size = searched_as(config)
    check_items(limits, len(request.texts), "texts", answers=size.nbest)
    texts = read_texts(request.texts, route, limits, raw=request.raw)
    sizes = [(one.words, 4 * len(one.text)) for one in texts if not isinstance(one, RpcError)]
    replaces = request.replace_unknown and not model.copies  # models that copy do it in any case
    attention, answered = request.with_attention or replaces, request.with_attention and model.attends
    cost = translation_cost(sizes, size, model.proportions, answered=answered, kept=attention)
    key: Key = Decoding(model, attention)
    items: list[Any]
    if isinstance(config, SamplingConfig):
        key = Sampling(model, attention)
        items = [one if isinstance(one, RpcError) else sample_of(one.text, config) for one in texts]
    else:
        items = [one if isinstance(one, RpcError) else SearchItem(one.text, config) for one in texts]
    tokens = [0 if isinstance(one, RpcError) else (one.words + 2) * size.beam for one in texts]
    read = sum([words for words, _ in sizes])
    reply = functools.partial(_reply, request, route, replaces=replaces, read=read)
    return make_plan(key, items, tokens, priority=request.priority, cost=cost, limits=limits, reply=reply)


def _check_supported(request: pb.TranslateRequest, route: Route, config: DecodingConfig | SamplingConfig) -> None:
    """Raises RpcError for samples, or for what the request wants of unknown words, where the model cannot do it."""
    model = route.model
    if request.samples and model.sampler is None:
        raise not_supported(f"samples of the model {route.name!r} cannot be drawn")
    if model.copies and config.forbid_unknown:
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
    *,
    replaces: bool,
    read: int,
) -> tuple[bytes, Words]:
    """The ``TranslateResponse`` with the texts of all translations as the request wants them."""
    model, words = route.model, {"read": read}
    nbests = [[] if isinstance(one, RpcError) else one for one in found]
    words["written"] = sum(len(one[0].words) for one in nbests if one)
    if replaces:
        replaced = [[one.with_unknown_replaced(model.unknowns) for one in nbest] for nbest in nbests]
        shown = [[text for text, _ in one] for one in replaced]
        words["copied"] = sum(counts.copied for one in replaced for _, counts in one)
        words["translated"] = sum(counts.translated for one in replaced for _, counts in one)
    else:
        shown = [[one.text for one in nbest] for nbest in nbests]
    if request.raw:
        shown = written_texts(shown, route)
    answered = request.with_attention and model.attends
    return translate_answer(found, shown, answered, model.fields), words


MOST_DRAWN = 100_000
"""Words, and ends, that the samples of one text may have."""

_Config = TypeVar("_Config", DecodingConfig, SamplingConfig)
_BOTH = ("length_normalization", "max_length_ratio")
_SEARCH = ("beam", "nbest")
_SAMPLING = ("temperature", "seed")
_SHARED = (*_BOTH, "length_penalty", "max_length_extra", "min_length", "forbid_unknown")


def decoding_config(
    request: pb.TranslateRequest, defaults: DecodingConfig, limits: Limits, *, fixed: bool = False
) -> DecodingConfig | SamplingConfig:
    """The options of the request. Raises RpcError with the field at fault: of a ``fixed`` search any but ``nbest``."""
    if fixed:
        _check_fixed(request, defaults)
    for name in _SEARCH if request.samples else _SAMPLING:
        if request.HasField(name):
            raise invalid(name, f"{name} is for {'search; leave out' if request.samples else 'samples; set'} samples")
    given = _given(request, limits)
    if request.samples:
        shared = {name: getattr(defaults, name) for name in _SHARED}
        return _checked(SamplingConfig, {**shared, **given, "samples": request.samples, "by_text": True})
    return _search_with(defaults, tuple(given.items()), limits.beam)


def _check_fixed(request: pb.TranslateRequest, defaults: DecodingConfig) -> None:
    """Raises RpcError for an option that would make other lists than the weights were tuned with."""
    if request.samples:
        raise not_supported("a hybrid draws no samples; its neural model does")
    given = [name for name in (*_BOTH, "beam") if request.HasField(name)]
    if request.forbid_unknown and not defaults.forbid_unknown:
        given.append("forbid_unknown")
    if given:
        raise invalid(given[0], f"a hybrid searches as it was tuned to; leave out {', '.join(given)}")


def searched_as(config: DecodingConfig | SamplingConfig) -> DecodingConfig:
    """The search that costs as much: a sample is a hypothesis that is followed and answered."""
    if isinstance(config, DecodingConfig):
        return config
    shared: dict[str, Any] = {name: getattr(config, name) for name in _SHARED}
    return DecodingConfig(**shared, beam=config.samples, nbest=config.samples)


@functools.lru_cache(maxsize=1024)  # nearly all requests have the options of others
def _search_with(defaults: DecodingConfig, given: tuple[tuple[str, Any], ...], most: int) -> DecodingConfig:
    settings = {**defaults.to_mapping(), **dict(given)}
    if "beam" not in dict(given):
        settings["beam"] = max(settings["beam"], settings["nbest"])
    config = _checked(DecodingConfig, settings)
    if config.beam > most:
        raise invalid("beam", f"a beam of {config.beam}; at most {most}")
    if config.nbest > config.beam:
        raise invalid("nbest", f"{config.nbest} best translations need a beam of at least {config.nbest}")
    return config


def _given(request: pb.TranslateRequest, limits: Limits) -> dict[str, Any]:
    """The options that the request has, within the limits."""
    names = (*_BOTH, *(_SAMPLING if request.samples else _SEARCH))
    given: dict[str, Any] = {name: getattr(request, name) for name in names if request.HasField(name)}
    if request.forbid_unknown:
        given["forbid_unknown"] = True
    if request.samples > limits.nbest:
        raise invalid("samples", f"samples {request.samples}: expected a number of at most {limits.nbest}")
    for name, most in (
        ("beam", limits.beam),
        ("nbest", limits.nbest),
        ("max_length_ratio", limits.length_ratio),
        ("length_normalization", limits.length_normalization),
    ):
        if name in given and not given[name] <= most:  # a NaN is no number below the limit
            raise invalid(name, f"{name} {given[name]:g}: expected a number of at most {most:g}")
    return given


def _checked(kind: type[_Config], settings: Mapping[str, Any]) -> _Config:
    try:
        return kind.from_mapping(settings, origin="request")
    except NmtError as error:
        names = (*_BOTH, *_SEARCH, *_SAMPLING)
        raise invalid(next((name for name in names if f"'{name}'" in str(error)), ""), str(error)) from error


def sample_of(text: str, config: SamplingConfig) -> SampleItem | RpcError:
    """The item of a text, or why it is none: its samples are drawn together, and what they have drawn is kept."""
    drawn = config.samples * (config.length_limit(count_words(text)) + 1)
    if drawn <= MOST_DRAWN:
        return SampleItem(text, config)
    problem = f"the samples of the text may have {drawn:,} words; at most {MOST_DRAWN:,}"
    return invalid("samples", f"{problem}, ask for fewer of them or a smaller max_length_ratio", reason="TOO_COSTLY")
