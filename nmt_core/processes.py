"""Processes: how those for parallel work begin and end, and kept memory.

Processes are started afresh (``spawn``), since forked ones inherit the locks of numerical libraries;
they leave Ctrl-C to the program and end with it, also when that is killed.
"""

from __future__ import annotations

import contextlib
import ctypes
import multiprocessing
import os
import signal
import sys
import threading
from collections.abc import Iterator
from multiprocessing import resource_tracker
from multiprocessing.connection import wait

_TRIM_THRESHOLD, _MMAP_MAX = -1, -4  # malloc.h
_NEVER = 2**31 - 1
_VARIABLES = ("MALLOC_TRIM_THRESHOLD_", "MALLOC_MMAP_THRESHOLD_", "MALLOC_MMAP_MAX_")
_TUNABLES = ("glibc.malloc.trim_threshold", "glibc.malloc.mmap_threshold", "glibc.malloc.mmap_max")


@contextlib.contextmanager
def interrupts_held_back() -> Iterator[None]:
    """Ctrl-C waits until the end of the block; processes started in it do not get it, from their beginning on."""
    resource_tracker.ensure_running()  # which lets signals in when it begins
    noted: list[int] = []
    main = threading.current_thread() is threading.main_thread()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})  # which processes inherit
    handler = signal.signal(signal.SIGINT, lambda number, _: noted.append(number)) if main else None  # other threads
    try:
        yield
    finally:
        if main:
            signal.signal(signal.SIGINT, handler)
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        for number in noted[:1]:
            signal.raise_signal(number)


def begin_process() -> None:
    """For a process that the program has started: it leaves Ctrl-C to the program, and ends with it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_the_program, daemon=True).start()


def _end_with_the_program() -> None:
    program = multiprocessing.parent_process()
    if program is not None:
        wait([program.sentinel])
        os._exit(1)


def keep_memory_of_tensors() -> None:
    """Have the C library keep memory that is freed for its next use, all blocks, however large.

    An update of training frees and takes again the same gigabytes: gradients, logits, what is kept for the
    backward pass; scoring does the same on a smaller scale. What comes from the system comes page by page, filled with
    zeros: a fifth to a third of the time of training, a twentieth of that of scoring. glibc (mallopt(3)) maps a large
    block by itself, and returns the free end of the heap above a threshold, until both are set. It holds for the whole
    process. Nothing changes without glibc, nor where the environment sets any of it.
    """
    tunables = os.environ.get("GLIBC_TUNABLES", "")
    if any(name in os.environ for name in _VARIABLES) or any(name in tunables for name in _TUNABLES):
        return
    set_option = getattr(ctypes.CDLL(None), "mallopt", None) if sys.platform == "linux" else None
    if set_option is not None:
        set_option(_MMAP_MAX, 0)
        set_option(_TRIM_THRESHOLD, _NEVER)
