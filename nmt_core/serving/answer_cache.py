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

from nmt_core.serving.call import charge, current_client, has_failed, note_reuse
from nmt_core.serving.errors import LATE, Refusal

if TYPE_CHECKING:
    from nmt_core.serving.metrics import Metrics

_LARGEST_REQUEST = 1 << 16  # bytes; larger ones are hardly asked twice
_LARGEST_PART = 16  # an answer that needs more than this part of the room is not kept
_COPIES = 2  # of an answer that is sent: as a message of a stream, and in the library until the network has taken it
_OVERHEAD = 300  # bytes of an answer beside its own

Make = Callable[[], Awaitable[bytes]]
"""Works an answer out."""


class _Work:
    """An answer that is being worked out.

    At its ``ended`` it is ``kept``, or ``abandoned`` since its caller has gone, or else it cannot be shared.
    """

    def __init__(self) -> None:
        self.ended = asyncio.Event()
        self.kept = self.abandoned = False


class AnswerCache:
    """At most ``room`` bytes of answers; those that were not asked for longest go first."""

    def __init__(self, room: int, metrics: Metrics | None = None) -> None:
        self._room, self._metrics = room, metrics
        self.held = 0
        self._kept: collections.OrderedDict[bytes, bytes] = collections.OrderedDict()
        self._under_way: dict[bytes, _Work] = {}
        self._generation = 0
        if metrics is not None:
            metrics.watch_cache(self)

    async def answer(self, model: str, request: Any, make: Make) -> bytes:
        """The answer of ``make`` to a request of a model, or the one that it gave before.

        Raises what it raises, and Refusal where there is no memory to send what is kept.
        """
        if request.ByteSize() > _LARGEST_REQUEST:
            return await make()
        generation = self._generation
        key, how = self._key(model, request), "kept"
        while (kept := self._find(key, model, how)) is None:
            other = self._under_way.get(key)
            if other is None:
                return await self._work_out(key, generation, make)
            await other.ended.wait()
            if not (other.kept or other.abandoned):
                return await make()
            how = "shared"
        return kept

    async def _work_out(self, key: bytes, generation: int, make: Make) -> bytes:
        """The answer of ``make``, which others wait for and which is kept if it may be."""
        work = self._under_way[key] = _Work()
        try:
            response = await make()
            if generation == self._generation and not has_failed():
                self._keep(key, response)
                work.kept = key in self._kept
            return response
        except asyncio.CancelledError:
            work.abandoned = True
            raise
        except Refusal as refusal:
            work.abandoned = refusal.reason == LATE
            raise
        finally:
            del self._under_way[key]
            work.ended.set()

    def forget(self) -> None:
        """Keep nothing of what there is: the models were exchanged."""
        self._generation += 1
        self._kept.clear()
        self.held = 0

    def _key(self, model: str, request: Any) -> bytes:
        """The model is in it, since a request need not name the only one that its client may use."""
        parts = (str(self._generation), current_client(), model, request.DESCRIPTOR.full_name)
        digest = hashlib.sha256("\0".join(parts).encode("utf-8", "surrogatepass") + b"\0")
        digest.update(request.SerializeToString(deterministic=True))
        return digest.digest()

    def _find(self, key: bytes, model: str, how: str) -> bytes | None:
        response = self._kept.get(key)
        if response is not None:
            charge(_COPIES * len(response), answer=0)
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
