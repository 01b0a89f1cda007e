"""Who is told what a device does: the metrics of a server."""

from __future__ import annotations

from typing import Protocol


class Observer(Protocol):
    """Is told what an engine does, by the engine's thread."""

    def began(self, device: str, waited: float) -> None:
        """A job left the queue after so many seconds."""
        ...

    def turned(self, device: str, kind: str, *, tokens: int, room: int, seconds: float) -> None:
        """A turn was done with ``tokens`` of the ``room`` there was."""
        ...

    def cancelled(self, device: str, items: int) -> None:
        """Items of callers who had gone were dropped, waiting or running."""
        ...

    def expired(self, device: str) -> None:
        """A job was dropped because its deadline had passed."""
        ...
