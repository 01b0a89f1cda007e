"""Answers that are kept for a client who asks the same again, or asks it while it is being answered.

Every answer belongs to its client: nobody learns from the time of an answer what others have asked, and nobody waits
behind another client's requests.
"""

from __future__ import annotations

import asyncio
import collections
import hashlib
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from nmt_core.serving.call import current_client, has_failed, note_reuse

if TYPE_CHECKING:
    from nmt_core.serving.metrics import Metrics

_LARGEST_REQUEST = 1 << 16  # bytes; larger ones are hardly asked twice
_LARGEST_PART = 16  # an answer that needs more than this part of the room is not kept
_OVERHEAD = 300  # bytes of an answer beside its own

Make = Callable[[], Awaitable[bytes]]
"""Works an answer out."""


class AnswerCache:
    """At most ``room`` bytes of answers; those that were not asked for longest go first."""

    def __init__(self, room: int, metrics: Metrics | None = None) -> None:
        self._room, self._metrics = room, metrics
        self.held = 0
        self._kept: collections.OrderedDict[bytes, bytes] = collections.OrderedDict()
        self._under_way: dict[bytes, asyncio.Event] = {}
        self._generation = 0
        if metrics is not None:
            metrics.watch_cache(self)

    async def answer(self, model: str, request: Any, make: Make) -> bytes:
        """The answer of ``make`` to a request of a model, or the one that it gave before. Raises what it raises."""
        if request.ByteSize() > _LARGEST_REQUEST:
            return await make()
        key = self._key(request)
        if (kept := self._find(key, model, "kept")) is not None:
            return kept
        if key in self._under_way:
            await self._under_way[key].wait()
            if (kept := self._find(key, model, "shared")) is not None:
                return kept
            return await make()  # the other one failed, or its client has gone
        done = self._under_way[key] = asyncio.Event()
        generation = self._generation
        try:
            response = await make()
            if generation == self._generation and not has_failed():
                self._keep(key, response)
            return response
        finally:
            del self._under_way[key]
            done.set()

    def forget(self) -> None:
        """Keep nothing of what there is: the models were exchanged."""
        self._generation += 1
        self._kept.clear()
        self.held = 0

    def _key(self, request: Any) -> bytes:
        parts = (str(self._generation), current_client(), request.DESCRIPTOR.full_name)
        digest = hashlib.sha256("\0".join(parts).encode("utf-8", "surrogatepass") + b"\0")
        digest.update(request.SerializeToString(deterministic=True))
        return digest.digest()

    def _find(self, key: bytes, model: str, how: str) -> bytes | None:
        response = self._kept.get(key)
        if response is not None:
            self._kept.move_to_end(key)
            note_reuse(model=model)
            if self._metrics is not None:
                self._metrics.reused.labels(how).inc()
        return response

    def _keep(self, key: bytes, response: bytes) -> None:
        size = len(response) + _OVERHEAD
        if size * _LARGEST_PART > self._room:
            return
        self._kept[key] = response
        self.held += size
        while self.held > self._room:
            _, oldest = self._kept.popitem(last=False)
            self.held -= len(oldest) + _OVERHEAD
