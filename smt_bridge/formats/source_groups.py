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
from smt_bridge.fields import has_wide_blanks, phrase_of
from smt_bridge.formats.phrase_table import Columns, Window, read_windows, split_window


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


def check_sorted(path: str) -> None:
    """Raise FormatError, with the line, for what Moses' binarisers do not put up with.

    That is a source in front of a smaller one, whose pairs they lose, and blanks within phrases other than single
    spaces: Moses does not load such a table as a ProbingPT, and does not find the phrase in a CompactPT.
    """
    before = b""
    for window in read_windows(path, rules=True):
        columns = split_window(window)
        _check_blanks(window, columns)
        for place, source in enumerate(columns.sources):
            key = source + b"|||"  # as LC_ALL=C sort compares whole lines
            if key < before:
                shown = source.strip().decode("utf-8", "replace")
                problem = (
                    f"`{shown}` stands behind a larger source, and a binary table would lose pairs; sort the table"
                )
                raise FormatError(path, f"{problem} first (LC_ALL=C sort)", line=window.first + place)
            before = key


def _check_blanks(window: Window, columns: Columns) -> None:
    if b"  " not in window.content and b"\t" not in window.content:
        return
    for number, phrases in enumerate(zip(columns.sources, columns.targets, strict=True), start=window.first):
        if any(map(has_wide_blanks, phrases)):
            problem = "has a phrase with several blanks or a tab between its words, which are lost in a binary table"
            raise FormatError(window.path, f"{problem}; write single ones (tr -s ' \\t' ' ')", line=number)
