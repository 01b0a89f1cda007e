"""The C library keeps memory that a program frees for its next use, in place of giving it back to the system.

What comes from the system comes page by page, filled with zeros, which takes a fifth to a third of the time of
training, and a twentieth of that of scoring. glibc (mallopt(3)) has
a large block mapped by itself, and unmapped when it is freed; smaller ones are of the heap, of which the free end
is returned above a threshold. What is large, and that threshold, follow the largest block that was freed, until
one of them is set: so both are.

It is for a program to decide, since it holds for the whole process. Nothing changes without glibc, nor where the
environment sets any of it (``MALLOC_TRIM_THRESHOLD_``, ``GLIBC_TUNABLES``).
"""

from __future__ import annotations

import ctypes
import os
import sys

_TRIM_THRESHOLD, _MMAP_MAX = -1, -4  # malloc.h
_NEVER = 2**31 - 1
_VARIABLES = ("MALLOC_TRIM_THRESHOLD_", "MALLOC_MMAP_THRESHOLD_", "MALLOC_MMAP_MAX_")
_TUNABLES = ("glibc.malloc.trim_threshold", "glibc.malloc.mmap_threshold", "glibc.malloc.mmap_max")


def keep_memory_of_tensors() -> None:
    """Keep all blocks, however large.

    An update of training frees and takes again the same gigabytes: gradients, logits, what is kept for the
    backward pass; scoring does the same on a smaller scale.
    """
    tunables = os.environ.get("GLIBC_TUNABLES", "")
    if any(name in os.environ for name in _VARIABLES) or any(name in tunables for name in _TUNABLES):
        return
    set_option = getattr(ctypes.CDLL(None), "mallopt", None) if sys.platform == "linux" else None
    if set_option is not None:
        set_option(_MMAP_MAX, 0)
        set_option(_TRIM_THRESHOLD, _NEVER)
