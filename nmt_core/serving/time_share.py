"""Who has the device next, of several that share it by time: start-time fair queueing (Goyal, Vin and Cheng 1996).

It is who has used least of it, for the size of its share. Nobody has credit for time in which it had nothing to do.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TypeVar


class TimeShare:
    """One of those who share: how much of a busy device it has, beside others' shares, and what it has used so far.

    ``used`` is in seconds of a share of 1; ``last`` is when its latest turn ended, in seconds of ``time.monotonic``.
    """

    def __init__(self, share: float = 1.0) -> None:
        self.share, self.used, self.last = share, 0.0, -math.inf
        self._before, self._latest = 0.0, 0.0  # used before the latest turn; its seconds

    @property
    def idle(self) -> bool:
        """Nothing to do."""
        raise NotImplementedError

    def use(self, seconds: float, *, begin: float) -> None:
        """It had the device from ``begin`` on."""
        self._before, self._latest = self.used, seconds
        self.used += seconds / self.share
        self.last = begin + seconds

    def join(self, others: Iterable[TimeShare]) -> None:
        """It was idle, and has work now: it has used as much as those who have work, or as all if none has."""
        known = list(others)
        busy = [one.used for one in known if not one.idle]
        self.used = max(self.used, min(busy) if busy else max((one.used for one in known), default=0.0))

    def change(self, share: float, *, least: float) -> None:
        """Its share of now: where that is larger, the latest turn counts by it, and ``used`` is ``least`` at least.

        Else whoever comes to it would wait as long as those for whom it was small.
        """
        if share > self.share:
            self.used = min(self.used, max(least, self._before + self._latest / share))
        self.share = share


_Share = TypeVar("_Share", bound=TimeShare)


def least_used_first(shares: Iterable[_Share]) -> list[_Share]:
    """Those that have work, in the order of their turns."""
    return sorted((one for one in shares if not one.idle), key=lambda one: one.used)


def passed_by(waiting: Iterable[TimeShare], chosen: TimeShare) -> None:
    """Those before ``chosen`` had nothing for the device, but wait for something else."""
    for one in waiting:
        one.used = chosen.used
