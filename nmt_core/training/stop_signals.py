"""Ctrl-C and SIGTERM as a request to stop, which a run answers when its update is done."""

from __future__ import annotations

import signal
from types import FrameType
from typing import Any

from nmt_core.base.messages import say


class Interrupted(Exception):
    """The run was asked to stop and has saved its state."""


class StopSignals:
    """Inside the block the first signal sets ``asked``, a second one raises KeyboardInterrupt.

    ``announced``: a line says so. Outside the main thread, where no signal can be handled, nothing changes.
    """

    def __init__(self, *, announced: bool) -> None:
        self.asked = False
        self._announced = announced

    def __enter__(self) -> StopSignals:
        self._before: dict[signal.Signals, Any] = {}
        for number in (signal.SIGINT, signal.SIGTERM):
            if signal.getsignal(number) is signal.SIG_IGN:  # another process of the run has it
                continue
            try:
                self._before[number] = signal.signal(number, self._ask)
            except ValueError:  # not in the main thread
                break
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _ask(self, number: int, _: FrameType | None) -> None:
        if self.asked:
            raise KeyboardInterrupt
        self.asked = True
        if self._announced:
            say("stopping after this update; --resume will go on from it")
