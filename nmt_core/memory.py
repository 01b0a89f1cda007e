"""The memory allocator of a program that works with large tensors."""

from __future__ import annotations

import ctypes

_TRIM_THRESHOLD, _MMAP_MAX = -1, -4  # mallopt(3)
_NEVER = 2**31 - 1


def keep_freed_memory() -> None:
    """Keep large blocks for the next use when they are freed, in place of giving them back to the system.

    An update of training frees and takes again the same gigabytes: gradients, logits, what is kept for the
    backward pass; scoring does the same on a smaller scale. glibc maps every large block anew, and the
    system fills it with zeros page by page, which takes a fifth to a third of the time of training and a
    twentieth of that of scoring. It is for a program to decide, since it holds for the whole process;
    without glibc nothing happens.
    """
    set_option = getattr(ctypes.CDLL(None), "mallopt", None)
    if set_option is not None:
        set_option(_MMAP_MAX, 0)
        set_option(_TRIM_THRESHOLD, _NEVER)
