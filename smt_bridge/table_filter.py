"""Keeps the better targets of every source phrase of a table, by one of its columns; kept lines stay byte for byte.

A phrase table has many targets that a decoder never takes: Moses itself looks at the best 20 of a source
(``table-limit``). By a model's column, what goes is what the model thinks least of.

Shapes: N lines of a window, G sources in it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from smt_bridge.errors import FormatError
from smt_bridge.fields import split_tokens
from smt_bridge.formats.phrase_table import Window, split_window
from smt_bridge.formats.source_groups import source_starts

Floats = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]


class Rule(NamedTuple):
    """What is kept, by the score at place ``column`` (from 0).

    A line is kept that has at least ``minimum``, at least ``minimum_share`` of the best score of its source,
    and is one of the best ``keep`` of its source or as good as the last of them. None sets no limit.
    """

    column: int
    keep: int | None = None
    minimum_share: float = 0.0
    minimum: float = 0.0


class Counts(NamedTuple):
    """Lines and sources, how many lines each limit took (the first that did), and sources that lost all of theirs."""

    lines: int = 0
    sources: int = 0
    below_minimum: int = 0
    below_share: int = 0
    beyond_keep: int = 0
    sources_gone: int = 0

    @property
    def kept(self) -> int:
        """Lines that are left."""
        return self.lines - self.below_minimum - self.below_share - self.beyond_keep

    def plus(self, other: Counts) -> Counts:
        """The counts of both parts together."""
        return Counts._make(mine + theirs for mine, theirs in zip(self, other, strict=True))


class FilteredChunk(NamedTuple):
    r"""The kept lines of a window, each ending in ``\n``, and what was met."""

    content: bytes
    counts: Counts


def filter_windows(windows: Iterable[Window], rule: Rule) -> Iterator[FilteredChunk]:
    """Filter a table window by window, in order.

    Raises FormatError for malformed lines, a column that is not there, and lines of one source that do not stand
    together or are more than a window holds: the best of a source are known only where all of them are seen.
    """
    last = b""
    for window in windows:
        if rule.column >= window.scores:
            problem = f"has {window.scores} scores; there is no score {rule.column + 1} to filter by"
            raise FormatError(window.path, problem, line=window.first)
        columns = split_window(window)
        starts_G = source_starts(window, columns.sources, before=last)
        values_N = np.array([float(split_tokens(scores)[rule.column]) for scores in columns.scores])
        kept_N, counts = choose(values_N, starts_G, rule)
        content = b"".join(line + b"\n" for line, kept in zip(window.lines, kept_N.tolist(), strict=True) if kept)
        yield FilteredChunk(content, counts)
        last = columns.sources[-1]


def choose(values_N: Floats, starts_G: npt.NDArray[np.int64], rule: Rule) -> tuple[Flags, Counts]:
    """Which lines are kept; ``starts_G`` are the first lines of the sources."""
    sizes_G = np.diff(np.append(starts_G, len(values_N)))
    enough_N = values_N >= rule.minimum
    best_N = np.repeat(np.maximum.reduceat(values_N, starts_G), sizes_G)
    shared_N = enough_N & (values_N >= rule.minimum_share * best_N)
    kept_N = shared_N
    if rule.keep is not None:
        source_N = np.repeat(np.arange(len(starts_G)), sizes_G)
        falling_N = values_N[np.lexsort((-values_N, source_N))]
        worst_G = falling_N[starts_G + np.minimum(rule.keep, sizes_G) - 1]
        kept_N = shared_N & (values_N >= np.repeat(worst_G, sizes_G))
    gone = int((~np.logical_or.reduceat(kept_N, starts_G)).sum())
    enough, shared, kept = (int(flags_N.sum()) for flags_N in (enough_N, shared_N, kept_N))
    lines = len(values_N)
    return kept_N, Counts(lines, len(starts_G), lines - enough, enough - shared, shared - kept, gone)
