"""How far a command will go."""

from __future__ import annotations

import os
import sys


def line_total(path: str, *, quiet: bool) -> int | None:
    """The number of lines, where the file can be read twice and progress is shown. Raises InputError."""
    from nmt_core.files import read_line_blocks

    if quiet or sys.stderr is None or not sys.stderr.isatty() or path == "-" or not os.path.isfile(path):
        return None
    return sum(map(len, read_line_blocks(path)))
