"""The C library keeps the memory that large messages leave, for the next ones.

To get it from the kernel again, page by page, takes two thirds of the time in which gRPC copies a message, and nobody
is answered meanwhile. By itself glibc returns what is free at the end of the heap when that is twice the
largest block that was freed, and a message with its copies is more (mallopt(3)).
"""

from __future__ import annotations

import ctypes
import os
import sys

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # malloc.h
_LARGEST = 32 << 20  # bytes of a block that can be kept
_COPIES = 4  # of a message: as it is read, its bytes, the parsed message, its texts


def keep_freed_memory(message_bytes: int) -> None:
    """Keep what a message of that size and its copies leave, and at least what glibc may keep by itself.

    Nothing changes without glibc, nor where the environment sets MALLOC_TRIM_THRESHOLD_ or the like.
    """
    told = any(name.startswith("MALLOC_") for name in os.environ)
    if sys.platform != "linux" or told or not hasattr(library := ctypes.CDLL(None), "mallopt"):
        return
    library.mallopt(_MMAP_THRESHOLD, _LARGEST)
    library.mallopt(_TRIM_THRESHOLD, min(max(_COPIES * message_bytes, 2 * _LARGEST), 1 << 30))
