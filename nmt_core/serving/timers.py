"""Timers of one length, for which the event loop needs a single one: nearly all are cancelled before they end."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable


class Timers:
    """Timers of ``seconds``, each of which has a key. All belong to one event loop."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._running: dict[Hashable, tuple[float, Callable[[], None]]] = {}  # in the order of their ends
        self._next: asyncio.TimerHandle | None = None  # of the event loop

    def start(self, key: Hashable, expire: Callable[[], None]) -> None:
        """Call ``expire`` after that time; the key has no timer yet."""
        loop = asyncio.get_running_loop()
        end = loop.time() + self._seconds
        self._running[key] = end, expire
        if self._next is None:
            self._next = loop.call_at(end, self._end, loop)

    def cancel(self, key: Hashable) -> None:
        """End the timer of the key, if it still has one, without a call."""
        self._running.pop(key, None)

    def _end(self, loop: asyncio.AbstractEventLoop) -> None:
        """End those whose time has come, and wait for the first of the others, whatever is raised meanwhile."""
        try:
            while self._running:
                key, (end, expire) = next(iter(self._running.items()))
                if end > loop.time():
                    return
                del self._running[key]
                expire()
        finally:
            first = next(iter(self._running.values()), None)
            self._next = None if first is None else loop.call_at(first[0], self._end, loop)
