"""Keeps the better targets of every source phrase of a table, by one of its columns; kept lines stay byte for byte.

A phrase table has many targets that a decoder never takes: Moses itself looks at the best 20 of a source
(``table-limit``). By a model's column, what goes is what the model thinks least of.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import compress, pairwise
from typing import NamedTuple

from nmt_core.base.messages import counted
from smt_bridge.errors import FormatError
from smt_bridge.moses_lines import split_tokens
from smt_bridge.tables.lines import LOOKED_AT, SCORES, SOURCE
from smt_bridge.tables.table import Window, source_starts, split_window
from smt_bridge.tables.text_filter import SourceFilter


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
    lines, rows = window.lines, split_window(window).rows
    starts = source_starts(window, [row[SOURCE] for row in rows], before=before)
    kept, counts = [], Counts(len(lines))
    for begin, end in pairwise([*starts, len(lines)]):
        if sources is not None and not sources.occurs(window.path, window.first + begin, rows[begin][SOURCE]):
            counts = counts.plus(Counts(not_in_text=end - begin))
            continue
        values = [float(split_tokens(row[SCORES])[limits.column]) for row in rows[begin:end]]
        chosen, found = choose(values, limits)
        kept += list(compress(lines[begin:end], chosen))
        counts = counts.plus(found)
    return FilteredChunk(b"".join(line + b"\n" for line in kept), counts), rows[-1][SOURCE]


def choose(values: Sequence[float], limits: Limits) -> tuple[list[bool], Counts]:
    """Which lines of a source are kept, by their scores, and how many each limit took."""
    best = max(values)
    worst = 0.0 if limits.keep is None else sorted(values, reverse=True)[: limits.keep][-1]
    enough = [value >= limits.minimum for value in values]
    shared = [more and value >= limits.minimum_share * best for more, value in zip(enough, values, strict=True)]
    kept = [more and value >= worst for more, value in zip(shared, values, strict=True)]
    counts = Counts(
        sources=1,
        below_minimum=len(values) - sum(enough),
        below_share=sum(enough) - sum(shared),
        beyond_keep=sum(shared) - sum(kept),
        sources_gone=int(not any(kept)),
    )
    return kept, counts
