"""Standard streams that were closed before the program began (``2>&-``): nothing else takes their numbers.

The next file that is opened would get the number of the closed stream. What a library, or a program that we start, says
on standard error would then stand in that file.
"""

from __future__ import annotations

import os
import sys


def occupy_closed_streams() -> None:
    """Put ``/dev/null`` in their places; messages go there. ``sys.stdin`` and ``sys.stdout`` stay None, if they are."""
    opened = os.open(os.devnull, os.O_RDWR)
    while opened <= 2:
        os.set_inheritable(opened, True)
        opened = os.open(os.devnull, os.O_RDWR)
    os.close(opened)
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115 (as long as the program)
