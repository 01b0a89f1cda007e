"""The lines of a phrase table that have their source in common, and the order of sources.

What looks at all targets of a source needs them side by side, as train-model.perl writes them (sorted).
Shapes: G sources of a window.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from smt_bridge.errors import FormatError
from smt_bridge.formats.phrase_table import Window, read_windows, split_window


def source_starts(window: Window, sources: Sequence[bytes], *, before: bytes) -> npt.NDArray[np.int64]:
    """The places of the first line of every source, (G,); ``before`` is the last source of the window before.

    Raises FormatError for a source whose lines do not stand together, or are more than a window holds.
    """
    starts = [place for place, source in enumerate(sources) if not place or source != sources[place - 1]]
    seen = {before} if window.first > 1 else set()
    for place in starts:
        if sources[place] in seen:
            shown = sources[place].strip().decode("utf-8", "replace")
            problem = f"`{shown}` stands in several places, or has too many lines; sort the table first (LC_ALL=C sort)"
            remedy = f"{problem}, with single blanks between words"
            raise FormatError(window.path, remedy, line=window.first + place)
        seen.add(sources[place])
    return np.array(starts, dtype=np.int64)


def check_sorted(path: str) -> None:
    """Raise FormatError, with the line, for a source in front of a smaller one: Moses' binarisers lose its pairs."""
    before = b""
    for window in read_windows(path, rules=True):
        for place, source in enumerate(split_window(window).sources):
            key = source + b"|||"  # as LC_ALL=C sort compares whole lines
            if key < before:
                shown = source.strip().decode("utf-8", "replace")
                problem = (
                    f"`{shown}` stands behind a larger source, and a binary table would lose pairs; sort the table"
                )
                raise FormatError(path, f"{problem} first (LC_ALL=C sort)", line=window.first + place)
            before = key
