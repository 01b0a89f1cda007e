"""From the items of a request to a device and back: in which lane they wait, and what became of each."""

from __future__ import annotations

import asyncio
import functools
import logging
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from google.rpc import code_pb2

from nmt_core.serving.call import current_client, note, note_failure
from nmt_core.serving.devices import Place
from nmt_core.serving.models import Decoding, Key
from nmt_core.serving.refusal import Refusal, internal
from nmt_core.serving.work import LARGE
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


async def do(place: Place, ask: Ask, items: Sequence[Any], tokens: Sequence[int]) -> list[Any]:
    """An answer or a Refusal for every item of so many tokens; an item that is a Refusal already keeps it."""
    note(model=place.name, items=len(items))
    found = list(items)
    wanted = [index for index, item in enumerate(items) if not isinstance(item, Refusal)]
    most = place.model.proportions.together // LONG if isinstance(ask.key, Decoding) else LARGE
    long = [index for index in wanted if tokens[index] > most]
    short = [index for index in wanted if tokens[index] <= most]
    parts = [(lane, chosen) for lane, chosen in ((ask.lane, short), ("long", long)) if chosen]
    submit = functools.partial(place.engine.submit, ask.key, client=current_client(), deadline=ask.deadline)
    async with place.quota.one(sum(tokens[index] for index in wanted)):
        parts_found = await _all(
            submit([items[index] for index in chosen], tokens=[tokens[index] for index in chosen], lane=lane)
            for lane, chosen in parts
        )
    for (_, chosen), part in zip(parts, parts_found, strict=True):
        for index, answer in zip(chosen, part, strict=True):
            found[index] = _as_refusal(answer) if isinstance(answer, Exception) else answer
    return found


async def _all(parts: Iterable[Any]) -> list[Any]:
    """The results of coroutines; when one fails, or nobody waits any more, the others are called off."""
    coroutines = list(parts)
    if len(coroutines) == 1:  # as nearly always: no task of its own
        return [await coroutines[0]]
    tasks = [asyncio.ensure_future(part) for part in coroutines]
    try:
        return list(await asyncio.gather(*tasks))
    finally:
        for task in tasks:
            task.cancel()


def _as_refusal(error: Exception) -> Refusal:
    """What a client is told of an item that the model failed at."""
    note_failure()
    if isinstance(error, Refusal):
        return error
    _log.error("an item failed", exc_info=error)
    if type(error).__name__ == "OutOfMemoryError":
        problem = "the device has not enough memory for this item"
        return Refusal(problem, code=code_pb2.RESOURCE_EXHAUSTED, reason="OUT_OF_MEMORY")
    return internal()
