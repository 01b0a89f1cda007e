"""The lines of a phrase table that have their source in common, and the order of sources.

What looks at all targets of a source needs them side by side, as train-model.perl writes them (sorted). Sources are
compared as Moses does, by their words: how many blanks are between them makes no difference.
Shapes: G sources of a window.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from smt_bridge.errors import FormatError
from smt_bridge.moses_lines import phrase_of
from smt_bridge.tables.table import Window


def source_starts(window: Window, sources: Sequence[bytes], *, before: bytes) -> npt.NDArray[np.int64]:
    """The places of the first line of every source, (G,); ``before`` is the last source of the window before.

    Raises FormatError for a source whose lines do not stand together, or are more than a window holds.
    """
    phrases = list(map(phrase_of, sources))
    starts = [place for place, phrase in enumerate(phrases) if not place or phrase != phrases[place - 1]]
    seen = {phrase_of(before)} if window.first > 1 else set()
    for place in starts:
        if phrases[place] in seen:
            shown = phrases[place].decode("utf-8", "replace")
            problem = f"`{shown}` stands in several places, or has too many lines; sort the table first (LC_ALL=C sort)"
            remedy = f"{problem}, with single blanks between words"
            raise FormatError(window.path, remedy, line=window.first + place)
        seen.add(phrases[place])
    return np.array(starts, dtype=np.int64)
