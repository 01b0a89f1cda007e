"""How far a command is, on standard error, and how far it will go."""

from __future__ import annotations

import os
import sys
from typing import Any


def line_total(path: str, *, quiet: bool) -> int | None:
    """The number of lines, where the file can be read twice and progress is shown. Raises InputError."""
    from nmt_core.files import read_line_blocks

    if quiet or sys.stderr is None or not sys.stderr.isatty() or path == "-" or not os.path.isfile(path):
        return None
    return sum(map(len, read_line_blocks(path)))


def progress_bar(name: str, unit: str, *, quiet: bool) -> Any:
    """A bar on stderr; a log file needs no line every half second."""
    from tqdm import tqdm

    seen = sys.stderr is not None and not quiet  # it may have been closed before the program began
    seconds = 0.5 if seen and sys.stderr.isatty() else 30.0
    return tqdm(desc=name, unit=unit, unit_scale=True, file=sys.stderr, mininterval=seconds, disable=not seen)
