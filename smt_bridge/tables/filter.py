"""Keeps the better targets of every source phrase of a table, by one of its columns; kept lines stay byte for byte.

A phrase table has many targets that a decoder never takes: Moses itself looks at the best 20 of a source
(``table-limit``). By a model's column, what goes is what the model thinks least of.

Shapes: N lines of a window, G sources in it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import compress
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from nmt_core.base.messages import counted
from smt_bridge.errors import FormatError
from smt_bridge.moses_lines import split_tokens
from smt_bridge.tables.lines import LOOKED_AT
from smt_bridge.tables.source_groups import source_starts
from smt_bridge.tables.table import Columns, Window, split_window
from smt_bridge.tables.text_filter import SourceFilter

Floats = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]


class Limits(NamedTuple):
    """What is kept, by the score at place ``column`` (from 0).

    A line is kept that has at least ``minimum``, at least ``minimum_share`` of the best score of its source,
    and is one of the best ``keep`` of its source or as good as the last of them. None sets no limit.
    """

    column: int
    keep: int | None = None
    minimum_share: float = 0.0
    minimum: float = 0.0


class Counts(NamedTuple):
    """Lines and sources, how many lines each limit took (the first that did), and sources that lost all of theirs.

    ``not_in_text`` are the lines whose source does not occur in a text; their sources are not counted otherwise.
    """

    lines: int = 0
    sources: int = 0
    below_minimum: int = 0
    below_share: int = 0
    beyond_keep: int = 0
    sources_gone: int = 0
    not_in_text: int = 0

    @property
    def kept(self) -> int:
        """Lines that are left."""
        return self.lines - self.not_in_text - self.below_minimum - self.below_share - self.beyond_keep

    def plus(self, other: Counts) -> Counts:
        """The counts of both parts together."""
        return Counts._make(mine + theirs for mine, theirs in zip(self, other, strict=True))


class FilteredChunk(NamedTuple):
    r"""The kept lines of a window, each ending in ``\n``, and what was met."""

    content: bytes
    counts: Counts


def filter_windows(
    windows: Iterable[Window], limits: Limits, sources: SourceFilter | None = None
) -> Iterator[FilteredChunk]:
    """Filter a table window by window, in order; with ``sources``, first by what it has.

    Raises FormatError for malformed lines, a column that is not there, and lines of one source that do not stand
    together or are more than a window holds: the best of a source are known only where all of them are seen.
    """
    last = b""
    for window in windows:
        chunk, last = _filtered(window, limits, sources, before=last)
        yield chunk


def _filtered(
    window: Window, limits: Limits, sources: SourceFilter | None, *, before: bytes
) -> tuple[FilteredChunk, bytes]:
    """What is kept of a window, and its last source; nothing else of it stays in memory while the next one is cut."""
    if limits.column >= window.scores:
        problem = f"has {counted(window.scores, 'score')}; there is no score {limits.column + 1} to filter by"
        raise FormatError(window.path, problem, line=window.first)
    if sources is not None and window.first == 1:
        sources.prepare(window.path, window.content.split(b"\n", LOOKED_AT)[:LOOKED_AT])
    columns = split_window(window)
    starts_G = source_starts(window, columns.sources, before=before)
    last = columns.sources[-1]
    lines, scores = window.lines, columns.scores
    if sources is not None:
        there_N, starts_G = _that_occur(window, columns, starts_G, sources)
        lines, scores = list(compress(lines, there_N)), list(compress(scores, there_N))
    if not lines:
        return FilteredChunk(b"", Counts(window.size, not_in_text=window.size)), last
    values_N = np.array([float(split_tokens(numbers)[limits.column]) for numbers in scores])
    kept_N, counts = choose(values_N, starts_G, limits)
    content = b"".join(line + b"\n" for line in compress(lines, kept_N))
    return FilteredChunk(content, counts._replace(lines=window.size, not_in_text=window.size - len(lines))), last


def _that_occur(
    window: Window, columns: Columns, starts_G: npt.NDArray[np.int64], sources: SourceFilter
) -> tuple[Flags, npt.NDArray[np.int64]]:
    """Which lines have a source that occurs in the text, and the first of each such source among them."""
    sizes_G = np.diff(np.append(starts_G, len(columns.sources)))
    there_G = np.array(
        [sources.occurs(window.path, window.first + start, columns.sources[start]) for start in starts_G.tolist()]
    )
    sizes = sizes_G[there_G]
    return np.repeat(there_G, sizes_G), np.cumsum(sizes) - sizes


def choose(values_N: Floats, starts_G: npt.NDArray[np.int64], limits: Limits) -> tuple[Flags, Counts]:
    """Which lines are kept; ``starts_G`` are the first lines of the sources."""
    sizes_G = np.diff(np.append(starts_G, len(values_N)))
    enough_N = values_N >= limits.minimum
    best_N = np.repeat(np.maximum.reduceat(values_N, starts_G), sizes_G)
    shared_N = enough_N & (values_N >= limits.minimum_share * best_N)
    kept_N = shared_N
    if limits.keep is not None:
        source_N = np.repeat(np.arange(len(starts_G)), sizes_G)
        falling_N = values_N[np.lexsort((-values_N, source_N))]
        worst_G = falling_N[starts_G + np.minimum(limits.keep, sizes_G) - 1]
        kept_N = shared_N & (values_N >= np.repeat(worst_G, sizes_G))
    gone = int((~np.logical_or.reduceat(kept_N, starts_G)).sum())
    enough, shared, kept = (int(flags_N.sum()) for flags_N in (enough_N, shared_N, kept_N))
    lines = len(values_N)
    return kept_N, Counts(lines, len(starts_G), lines - enough, enough - shared, shared - kept, gone)
