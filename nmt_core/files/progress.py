"""How far a command is."""

from __future__ import annotations

import os
import sys
from typing import Any

from tqdm import tqdm

from nmt_core.files.lines import read_lines


class _Bar(tqdm):  # type: ignore[type-arg]
    """Shown from the first step on: before it, an input that is wrong has its error line alone."""

    def close(self) -> None:
        """Leave the bar of a short run, too."""
        if self.n:
            self.delay = 0
        super().close()


def progress_bar(name: str, unit: str, *, path: str | None = None, quiet: bool) -> Any:
    """A bar on stderr, which knows its end where it counts the lines of a file; a log needs no line every half second.

    Raises InputError.
    """
    is_seen = sys.stderr is not None and not quiet  # it may have been closed before the program began
    on_terminal = is_seen and sys.stderr.isatty()
    countable = on_terminal and path is not None and path != "-" and os.path.isfile(path)
    total = sum(1 for _ in read_lines(path)) if path is not None and countable else None
    seconds = 0.5 if on_terminal else 30.0
    return _Bar(
        desc=name, unit=unit, total=total, file=sys.stderr, mininterval=seconds, delay=0.001, disable=not is_seen
    )
