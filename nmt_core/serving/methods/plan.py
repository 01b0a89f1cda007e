"""What a method plans for a request, and what it replies.

A method is a function of a request, a route and the limits. It computes the cost before any work, and returns a
``Plan``: what the device is asked for, and how the reply is made of its answers (``finish``). Both are pure, and
run off the event loop where the request is large.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from google.rpc import code_pb2

from nmt_core.base.errors import is_full_gpu
from nmt_core.serving.engine.jobs import Part
from nmt_core.serving.engine.work import LARGE
from nmt_core.serving.errors import RpcError, internal
from nmt_core.serving.limits import Limits
from nmt_core.serving.methods.costs import Cost, check_cost
from nmt_core.serving.models.devices import Route
from nmt_core.serving.models.served import Decoding, Key
from nmt_core.v1 import nmt_pb2 as pb

INTERACTIVE_ITEMS = 32
"""Requests of so many items at most are interactive unless they say otherwise."""

LONG = 16
"""A search that needs more than this part of a full batch is in the class ``long``, as is all ``LARGE`` work."""

_log = logging.getLogger(__name__)

Words = Mapping[str, int]
"""How many words of each kind were done."""


class Reply(NamedTuple):
    """The bytes of a response, its words, and how many of its items are errors, by reason."""

    content: bytes
    words: Words
    errors: Mapping[str, int]


class Plan(NamedTuple):
    """Items for a device, in parts of one priority class each; an RpcError among the items is its own answer.

    ``indices`` are those of each part's items. ``reply`` makes the response of the answers to all items, and counts
    words.
    """

    key: Key
    items: Sequence[Any]
    parts: Sequence[Part]
    indices: Sequence[Sequence[int]]
    cost: Cost
    reply: Callable[[list[Any]], tuple[bytes, Words]]

    def finish(self, answers: Sequence[list[Any]]) -> Reply:
        """The reply to the request, made of the answers to each part."""
        found = list(self.items)
        for indices, of_part in zip(self.indices, answers, strict=True):
            for index, answer in zip(indices, of_part, strict=True):
                found[index] = _as_refusal(answer) if isinstance(answer, Exception) else answer
        content, words = self.reply(found)
        return Reply(content, words, Counter(one.reason for one in found if isinstance(one, RpcError)))


Method = Callable[[Any, Route, Limits], Plan]
"""Plans what is done for a request. Raises RpcError."""


def make_plan(
    key: Key,
    items: Sequence[Any],
    tokens: Sequence[int],
    *,
    priority: int,
    cost: Cost,
    limits: Limits,
    reply: Callable[[list[Any]], tuple[bytes, Words]],
) -> Plan:
    """The plan for items of so many tokens, of a ``priority`` of the contract. Raises RpcError where it costs too much.

    Items that may take long are in a part of their own, that others do not wait for them.
    """
    check_cost(limits, answer=cost.answer, steps=cost.steps)
    few = priority == pb.PRIORITY_UNSPECIFIED and len(items) <= INTERACTIVE_ITEMS
    name = "interactive" if few or priority == pb.PRIORITY_INTERACTIVE else "bulk"
    most = key.model.proportions.together // LONG if isinstance(key, Decoding) else LARGE
    indices: dict[str, list[int]] = {name: [], "long": []}
    for index, item in enumerate(items):
        if not isinstance(item, RpcError):
            indices[name if tokens[index] <= most else "long"].append(index)
    parts = {
        name: Part(name, [items[index] for index in some], [tokens[index] for index in some])
        for name, some in indices.items()
        if some
    }
    return Plan(key, items, list(parts.values()), [indices[name] for name in parts], cost, reply)


def _as_refusal(error: Exception) -> RpcError:
    """The error of an item that the model failed at."""
    if isinstance(error, RpcError):
        return error
    _log.error("an item failed", exc_info=error)
    if is_full_gpu(error):
        problem = "the device has not enough memory for this item"
        return RpcError(problem, code=code_pb2.RESOURCE_EXHAUSTED, reason="OUT_OF_MEMORY")
    return internal()
