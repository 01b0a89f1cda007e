"""``Translate``: from the texts of a request to the n-best lists, or samples, of its answer."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from nmt_core.inference.search.config import DecodingConfig, SamplingConfig
from nmt_core.serving.backend import Backend, words_of
from nmt_core.serving.checks import check_items, sample_problem
from nmt_core.serving.decoding_options import decoding_config, searched_as
from nmt_core.serving.dispatch import ask_for, do
from nmt_core.serving.errors import Refusal, not_supported
from nmt_core.serving.methods import answers
from nmt_core.serving.methods.costs import translation_cost
from nmt_core.serving.models.devices import Place
from nmt_core.serving.models.search import SearchItem
from nmt_core.serving.models.served import Decoding, Key, SampleItem, Sampling
from nmt_core.v1 import nmt_pb2 as pb

if TYPE_CHECKING:
    from nmt_core.inference.output.finish import Translation


async def translate(request: pb.TranslateRequest, deadline: float | None, backend: Backend) -> bytes:
    """The response, a ``TranslateResponse``. Raises Refusal."""
    place, limits, texts = backend.devices.find(request.model), backend.limits, backend.texts
    config = decoding_config(request, place.model.defaults, limits, fixed=place.model.kind == "hybrid")
    replaced = request.replace_unknown and not place.model.copies  # these do it in any case
    attention = request.with_attention or replaced
    _check_supported(request, place, config)
    size = searched_as(config)
    check_items(limits, len(request.texts), "texts", answers=size.nbest)
    tokenized = await texts.tokenized(place, request.texts, raw=request.raw)
    words = await texts.run(words_of, tokenized)
    sizes = await texts.run(_sizes, words, tokenized)
    answered = request.with_attention and place.model.attends
    count = functools.partial(translation_cost, answered=answered, kept=attention)
    backend.accept(await texts.run(count, sizes, size, place.model.proportions))
    key, items = await texts.run(_work, place, config, attention, tokenized)
    ask = ask_for(key, request.priority, len(tokenized), deadline)
    found = await do(texts, place, ask, items, [(count + 2) * size.beam for count in words])
    shown = await _shown(backend, place, found, replaced=replaced, raw=request.raw)
    await texts.run(_count, backend, place.name, words, found)
    return backend.checked(await texts.run(answers.translate_answer, found, shown, answered, place.model.fields))


def _sizes(words: Sequence[int], texts: Sequence[str | Refusal]) -> list[tuple[int, int]]:
    """Words and bytes of the texts that are translated."""
    return [(n, 4 * len(text)) for n, text in zip(words, texts, strict=True) if not isinstance(text, Refusal)]


def _count(backend: Backend, model: str, words: Sequence[int], found: Sequence[Any]) -> None:
    """Count errors, and words read and written."""
    backend.count_errors(model, found)
    backend.count_words(model, "read", words)
    backend.count_words(model, "written", (len(one[0].words) for one in found if not isinstance(one, Refusal)))


def _check_supported(request: pb.TranslateRequest, place: Place, config: DecodingConfig | SamplingConfig) -> None:
    """Raises Refusal for what the model cannot do about unknown words."""
    model = place.model
    if model.copies and config.forbid_unknown:
        raise not_supported(f"forbid_unknown: {place.name!r} writes unknown words as places of the source")
    if not request.replace_unknown:
        return
    if not (model.attends or model.copies):
        raise not_supported(f"replace_unknown needs a model with attention; {place.name!r} has none")
    if model.spells:
        raise not_supported(f"replace_unknown is for models that write <unk>; {place.name!r} spells unknown words")


def _work(
    place: Place, config: DecodingConfig | SamplingConfig, attention: bool, texts: Sequence[str | Refusal]
) -> tuple[Key, list[Any]]:
    """What is done with the texts, and each as an item of it, or why it is none."""
    if isinstance(config, DecodingConfig):
        items = [text if isinstance(text, Refusal) else SearchItem(text, config) for text in texts]
        return Decoding(place.model, attention), items
    if place.model.sampler is None:
        raise not_supported(f"samples of the model {place.name!r} cannot be drawn")
    drawn = [
        text if isinstance(text, Refusal) else sample_problem(config, text) or SampleItem(text, config)
        for text in texts
    ]
    return Sampling(place.model, attention), drawn


async def _shown(backend: Backend, place: Place, found: Sequence[Any], *, replaced: bool, raw: bool) -> list[list[str]]:
    """The texts of all translations, as the request wants them."""
    show = functools.partial(_replaced, backend, place) if replaced else _texts
    shown = await backend.texts.run(lambda: [[] if isinstance(one, Refusal) else show(one) for one in found])
    return await backend.texts.detokenized(place, shown) if raw else shown


def _texts(nbest: Sequence[Translation]) -> list[str]:
    return [one.text for one in nbest]


def _replaced(backend: Backend, place: Place, nbest: Sequence[Translation]) -> list[str]:
    """The texts without <unk>, which are counted."""
    written = [one.with_unknown_replaced(place.model.unknowns) for one in nbest]
    backend.count_words(place.name, "copied", (counts.copied for _, counts in written))
    backend.count_words(place.name, "translated", (counts.translated for _, counts in written))
    return [text for text, _ in written]
