"""Keeps the better targets of every source phrase of a table, by one of its columns; kept lines stay byte for byte.

A phrase table has many targets that a decoder never takes: Moses itself looks at the best 20 of a source
(``table-limit``). By a model's column, what goes is what the model thinks least of.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterable, Iterator, Sequence
from itertools import compress, pairwise
from typing import NamedTuple

from nmt_core.base.errors import ConfigError
from nmt_core.base.messages import counted, say
from nmt_core.base.words import whole_number
from nmt_core.files import open_output
from nmt_core.files.progress import progress_bar
from smt_bridge.errors import FormatError
from smt_bridge.metadata import Metadata, find_metadata, metadata_path, new_metadata, write_metadata
from smt_bridge.moses_lines import SEPARATOR, split_tokens
from smt_bridge.tables.lines import LOOKED_AT, SCORES, SOURCE
from smt_bridge.tables.scoring import UNKNOWN
from smt_bridge.tables.table import Window, read_windows, source_starts, split_window, table_blocks
from smt_bridge.tables.text_filter import SourceFilter, read_source_text

_EXPECTED = "expected a table of Moses, `source ||| ...`"


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


def filter_by_sources(path: str, sources: SourceFilter) -> Iterator[FilteredChunk]:
    """Filter a table of any kind and order by what ``sources`` has, in constant memory.

    Raises FormatError, naming the line, for one without fields, and for what is no rule in a table of rules.
    """
    seen, before, has = 0, None, False
    for block in _with_beginning(table_blocks(path)):
        lines = block.removesuffix(b"\n").split(b"\n")
        if not seen:
            sources.prepare(path, lines[:LOOKED_AT])
        kept = []
        for number, line in enumerate(lines, start=seen + 1):
            source, bars, _ = line.partition(SEPARATOR)
            if not bars:
                raise FormatError(path, f"has no |||; {_EXPECTED}", line=number)
            if source != before:
                before, has = source, sources.occurs(path, number, source)
            if has:
                kept.append(line)
        seen += len(lines)
        yield FilteredChunk(b"\n".join([*kept, b""]), Counts(len(lines), not_in_text=len(lines) - len(kept)))
    if not seen:
        raise FormatError(path, f"the file is empty; {_EXPECTED}")


def _with_beginning(blocks: Iterator[bytes]) -> Iterator[bytes]:
    """The same blocks, the first of which has all lines by which the kind of table is recognised."""
    waiting, lines = [], 0
    for block in blocks:
        waiting.append(block)
        lines += block.count(b"\n")
        if lines >= LOOKED_AT:
            break
    if waiting:
        yield b"".join(waiting)
    yield from blocks


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


NAME = "filter-table"


def filter_table(args: argparse.Namespace) -> int:
    """Filter, write the record, say what went."""
    record = find_metadata(args.input)
    beside = new_metadata(args.output)
    counts = Counts()
    sources = _open_sources(args)
    if sources is not None and not (args.keep or args.minimum_share or args.minimum):
        limits, chunks = None, filter_by_sources(args.input, sources)
    else:
        limits = _limits(args, record)
        chunks = filter_windows(read_windows(args.input), limits, sources)

    def finish() -> None:
        if beside is not None and record is not None:
            _write_record(args, record, counts)

    with (
        progress_bar(NAME, " lines", path=args.input, quiet=args.quiet) as progress,
        open_output(args.output, on_complete=finish) as stream,
    ):
        for chunk in chunks:
            stream.write(chunk.content)
            counts = counts.plus(chunk.counts)
            progress.update(chunk.counts.lines)
    _summarise(counts, sources=bool(args.sources), limited=limits is not None)
    return 0


def _open_sources(args: argparse.Namespace) -> SourceFilter | None:
    if not args.sources:
        if args.input_factor is not None:
            raise ConfigError("--input-factor is for --sources")
        return None
    factors = None
    if args.input_factor is not None:
        numbers = [whole_number(one) for one in args.input_factor.split(",")]
        factors = [number for number in numbers if number is not None]
        if len(factors) < len(numbers):
            raise ConfigError(f"--input-factor {args.input_factor}: expected numbers from 0, such as 0 or 0,1")
    text = read_source_text(args.sources, factors)
    if not any(text.lines):
        raise ConfigError(f"--sources {args.sources[0]}: has no words, so that nothing of the table would be left")
    return SourceFilter(text)


def _limits(args: argparse.Namespace, record: Metadata | None) -> Limits:
    if not 0.0 <= args.minimum_share <= 1.0:
        raise ConfigError("--minimum-share must be between 0 and 1")
    if not 0.0 <= args.minimum < math.inf:
        raise ConfigError("--minimum must be at least 0")
    return Limits(_column(args, record), args.keep, args.minimum_share, args.minimum)


def _column(args: argparse.Namespace, record: Metadata | None) -> int:
    """The place of the score, from 0."""
    number = whole_number(args.by)
    if number is not None:
        if number < 1:
            raise ConfigError("--by counts scores from 1")
        return number - 1
    path = metadata_path(args.input)
    if record is None or record.scores_before is None:
        problem = f"which score is {args.by}? There is no {path}, so give its number"
        raise ConfigError(f"--by: {problem}, such as --by 5")
    if args.by not in record.columns or args.by == UNKNOWN:
        there = ", ".join(name for name in record.columns if name != UNKNOWN)
        raise ConfigError(f"--by {args.by}: {path} has {there}; or give the number of a score")
    return record.scores_before + list(record.columns).index(args.by)


def _write_record(args: argparse.Namespace, record: Metadata, counts: Counts) -> None:
    options = {
        name: getattr(args, name)
        for name in ("input", "sources", "input_factor", "by", "keep", "minimum_share", "minimum")
    }
    filtered = [*record.content.get("filtered", []), {**options, "counts": {**counts._asdict(), "kept": counts.kept}}]
    write_metadata(args.output, {**record.content, "filtered": filtered})


def _summarise(counts: Counts, *, sources: bool, limited: bool) -> None:
    gone = [f"{counts.not_in_text:,} not in --sources"] if sources else []
    if limited:
        gone += [f"{counts.below_minimum:,} below --minimum", f"{counts.below_share:,} below --minimum-share"]
        gone.append(f"{counts.beyond_keep:,} beyond --keep")
    say(f"{NAME}: {counts.kept:,} of {counted(counts.lines, 'pair' if limited else 'line')} kept; {', '.join(gone)}")
    if counts.not_in_text == counts.lines:
        say(f"{NAME}: warning: no source occurs in the text: is it tokenised, cased and escaped like the table?")
    if counts.sources_gone:
        say(
            f"{NAME}: {counts.sources_gone:,} of {counted(counts.sources, 'source has', 'sources have')} no target left"
        )
