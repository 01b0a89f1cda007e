"""Places in long computations at which they can be held up, so that others use the device meanwhile."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator


class _Thread(threading.local):
    """What holds up the computations of a thread."""

    hold: Callable[[], None] | None = None


_THREAD = _Thread()


def yield_point() -> None:
    """Called between the steps of a long computation. Where nobody holds it up this does nothing."""
    if _THREAD.hold is not None:
        _THREAD.hold()


@contextlib.contextmanager
def held_up_by(hold: Callable[[], None]) -> Iterator[None]:
    """Within the block, and in this thread, ``hold`` is called wherever computations may pause."""
    _THREAD.hold = hold
    try:
        yield
    finally:
        _THREAD.hold = None
