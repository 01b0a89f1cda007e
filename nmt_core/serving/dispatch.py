"""From the items of a request to a device and back: in which lane they wait, and what became of each."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from google.rpc import code_pb2

from nmt_core.base.errors import is_full_gpu
from nmt_core.serving.call import current_client, note
from nmt_core.serving.engine.jobs import Part
from nmt_core.serving.engine.work import LARGE
from nmt_core.serving.errors import Refusal, internal
from nmt_core.serving.models.devices import Place
from nmt_core.serving.models.served import Decoding, Key
from nmt_core.serving.text_processing import TextProcessing
from nmt_core.v1 import nmt_pb2 as pb

INTERACTIVE_ITEMS = 32
"""Requests of so many items at most are interactive unless they say otherwise."""

LONG = 16
"""An item that needs more than this part of a full batch is searched in a lane of its own, as is all ``LARGE`` work."""

_log = logging.getLogger(__name__)


class Ask(NamedTuple):
    """What work is wanted, how urgently, and by when (seconds of ``time.monotonic``)."""

    key: Key
    lane: str
    deadline: float | None


def ask_for(key: Key, priority: int, items: int, deadline: float | None) -> Ask:
    """Work for so many items, of a priority of the contract."""
    few = priority == pb.PRIORITY_UNSPECIFIED and items <= INTERACTIVE_ITEMS
    return Ask(key, "interactive" if few or priority == pb.PRIORITY_INTERACTIVE else "bulk", deadline)


class _Part(NamedTuple):
    """Items of a request that wait in the same lane, and their places in it."""

    lane: str
    places: Sequence[int]
    items: Sequence[Any]
    tokens: Sequence[int]


async def do(texts: TextProcessing, place: Place, ask: Ask, items: Sequence[Any], tokens: Sequence[int]) -> list[Any]:
    """An answer or a Refusal for every item of so many tokens; an item that is a Refusal already keeps it.

    Of a large request the items are divided, and their answers put together, where its ``texts`` are read.
    """
    note(model=place.name, items=len(items))
    most = place.model.proportions.together // LONG if isinstance(ask.key, Decoding) else LARGE
    parts = await texts.run(_divided, ask.lane, items, tokens, most)
    jobs = [Part(part.lane, part.items, part.tokens) for part in parts]
    answers = await place.engine.submit(ask.key, jobs, client=current_client(), deadline=ask.deadline)
    return await texts.run(_merged, items, parts, answers)


def _divided(lane: str, items: Sequence[Any], tokens: Sequence[int], most: int) -> list[_Part]:
    """Items of ``most`` tokens for that lane, and the longer ones, as far as there are any."""
    if items and max(tokens) <= most and not _has_any(items, Refusal):  # as nearly always
        return [_Part(lane, range(len(items)), items, tokens)]
    wanted = [index for index, item in enumerate(items) if not isinstance(item, Refusal)]
    short = [index for index in wanted if tokens[index] <= most]
    long = [index for index in wanted if tokens[index] > most]
    return [_part(where, places, items, tokens) for where, places in ((lane, short), ("long", long)) if places]


def _part(lane: str, places: Sequence[int], items: Sequence[Any], tokens: Sequence[int]) -> _Part:
    return _Part(lane, places, [items[index] for index in places], [tokens[index] for index in places])


def _merged(items: Sequence[Any], parts: Sequence[_Part], answers: Sequence[list[Any]]) -> list[Any]:
    """What was found for every item."""
    if len(parts) == 1 and len(answers[0]) == len(items) and not _has_any(answers[0], Exception):
        return list(answers[0])
    found = list(items)
    for part, of_part in zip(parts, answers, strict=True):
        for index, answer in zip(part.places, of_part, strict=True):
            found[index] = _as_refusal(answer) if isinstance(answer, Exception) else answer
    return found


def _has_any(values: Iterable[object], kind: type) -> bool:
    """Whether any value is of a kind. Values are of few types, which are told apart sooner than the values."""
    return any(issubclass(one, kind) for one in set(map(type, values)))


def _as_refusal(error: Exception) -> Refusal:
    """What a client is told of an item that the model failed at."""
    if isinstance(error, Refusal):
        return error
    _log.error("an item failed", exc_info=error)
    if is_full_gpu(error):
        problem = "the device has not enough memory for this item"
        return Refusal(problem, code=code_pb2.RESOURCE_EXHAUSTED, reason="OUT_OF_MEMORY")
    return internal()
