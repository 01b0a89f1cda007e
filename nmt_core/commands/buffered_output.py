"""Standard output without a buffer (``PYTHONUNBUFFERED``, ``python -u``): it gets one.

Without one Python gives every text to the system once, and drops without a word what a disk that has become full, or a
file at its limit, did not take of it. A buffer asks again, and hears of the error.
"""

from __future__ import annotations

import io
import sys


def buffer_output() -> None:
    """Have ``sys.stdout`` write all that it is given, or raise OSError; who waits for lines is served by flushing."""
    stream = sys.stdout
    if isinstance(getattr(stream, "buffer", None), io.RawIOBase):
        sys.stdout = open(  # noqa: SIM115 (as long as the program)
            stream.fileno(), "w", encoding=stream.encoding, errors=stream.errors, closefd=False
        )
