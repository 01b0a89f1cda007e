"""What a method plans for a request, and what it replies.

A method is a function of a request, a route and the limits. It computes the cost before any work, and returns a
``Plan``: what the device is asked for, and how the reply is made of its answers (``finish``). Both halves are pure, and
run off the event loop where the request is large.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from google.rpc import code_pb2

from nmt_core.base.errors import is_full_gpu
from nmt_core.serving.engine.jobs import Part
from nmt_core.serving.engine.work import LARGE
from nmt_core.serving.errors import RpcError, internal
from nmt_core.serving.limits import Limits
from nmt_core.serving.methods.costs import Cost
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
        found = self._merged(answers)
        content, words = self.reply(found)
        errors = Counter(one.reason for one in found if isinstance(one, RpcError)) if _has_any(found, RpcError) else {}
        return Reply(content, words, errors)

    def _merged(self, answers: Sequence[list[Any]]) -> list[Any]:
        """What was found for every item."""
        if len(answers) == 1 and len(answers[0]) == len(self.items) and not _has_any(answers[0], Exception):
            return answers[0]
        found = list(self.items)
        for indices, of_part in zip(self.indices, answers, strict=True):
            for index, answer in zip(indices, of_part, strict=True):
                found[index] = _as_refusal(answer) if isinstance(answer, Exception) else answer
        return found


Method = Callable[[Any, Route, Limits], Plan]
"""Plans what is done for a request. Raises RpcError."""


def make_plan(
    key: Key,
    items: Sequence[Any],
    tokens: Sequence[int],
    *,
    priority: int,
    cost: Cost,
    reply: Callable[[list[Any]], tuple[bytes, Words]],
) -> Plan:
    """The plan for items of so many tokens, of a ``priority`` of the contract."""
    few = priority == pb.PRIORITY_UNSPECIFIED and len(items) <= INTERACTIVE_ITEMS
    name = "interactive" if few or priority == pb.PRIORITY_INTERACTIVE else "bulk"
    most = key.model.proportions.together // LONG if isinstance(key, Decoding) else LARGE
    if items and max(tokens) <= most and not _has_any(items, RpcError):  # as nearly always
        return Plan(key, items, [Part(name, items, tokens)], [range(len(items))], cost, reply)
    wanted = [index for index, item in enumerate(items) if not isinstance(item, RpcError)]
    divided = [
        (name, [index for index in wanted if tokens[index] <= most]),
        ("long", [index for index in wanted if tokens[index] > most]),
    ]
    parts = [_part(name, items, tokens, indices) for name, indices in divided if indices]
    return Plan(key, items, parts, [indices for _, indices in divided if indices], cost, reply)


def takes_time(request: Any) -> bool:
    """Whether even a small request is not for the event loop: its texts are to be cut into words first."""
    return bool(getattr(request, "raw", False) or getattr(request, "form", pb.TEXT_FORM_UNSPECIFIED))


def _part(name: str, items: Sequence[Any], tokens: Sequence[int], indices: Sequence[int]) -> Part:
    return Part(name, [items[index] for index in indices], [tokens[index] for index in indices])


def _has_any(values: Iterable[object], kind: type) -> bool:
    """Whether any value is of a kind. Values are of few types, which are told apart sooner than the values."""
    return any(issubclass(one, kind) for one in set(map(type, values)))


def _as_refusal(error: Exception) -> RpcError:
    """The error of an item that the model failed at."""
    if isinstance(error, RpcError):
        return error
    _log.error("an item failed", exc_info=error)
    if is_full_gpu(error):
        problem = "the device has not enough memory for this item"
        return RpcError(problem, code=code_pb2.RESOURCE_EXHAUSTED, reason="OUT_OF_MEMORY")
    return internal()
