"""Rescoring a table: the job, its worker, the metadata of the new table, and the work of `smt-bridge rescore-table`."""

from __future__ import annotations

import argparse
import functools
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, groupby
from typing import Any

from nmt_core.base.interfaces import PairScorer
from nmt_core.base.messages import counted, say
from nmt_core.jobs.journal import Shard
from nmt_core.jobs.outputs import Result
from nmt_core.jobs.run import Job, are_files, run_with_options
from smt_bridge.errors import FormatError
from smt_bridge.metadata import Metadata, new_metadata, write_metadata
from smt_bridge.models import count_jobs, open_model, source_factors, start_worker
from smt_bridge.moses_lines import LINES_FOR_FACTORS, look_factored, parse_factors, phrase_of
from smt_bridge.tables.lines import ends_in_label
from smt_bridge.tables.scoring import REVERSE, Counts, Scorers, added_columns, rescore_window
from smt_bridge.tables.table import (
    Fields,
    Window,
    phrases_of,
    read_windows,
    split_window,
)

NAME = "rescore-table"
_MANY_UNKNOWN = 0.25  # of the words of distinct pairs, where rare ones weigh more than in running text
_OPTIONS = ("scorer", "reverse_scorer", "unknown_count", "unescape", "factor", "dtype", "softmax")
"""What the new columns depend on."""


def rescore_files(args: argparse.Namespace) -> int:
    """Check the input's first lines, score the table, and say what was met."""
    started = time.perf_counter()
    output = args.output or "-"
    metadata_file = new_metadata(output)  # refused before the work, not behind it
    windows = read_windows(args.input)
    first = next(windows)  # a wrong file is found before a model is loaded
    columns = split_window(first)
    check_factors(first, columns, args.factor, args.scorer, args.reverse_scorer)
    for problem in [] if args.quiet else _remarks(first, columns):
        say(f"{NAME}: {args.input}: {problem}")
    options = {"input": args.input, **{name: getattr(args, name) for name in _OPTIONS}}
    stream = None if are_files(args.input, [output]) else _beginning(chain([first], windows), args.dry_run)

    def describe(counts: dict[str, Any], signatures: dict[str, Any]) -> None:
        if metadata_file is not None:
            write_table_metadata(output, options, first=first, signatures=signatures, counts=Counts(**counts))

    specs = [spec for spec in (args.scorer, args.reverse_scorer) if spec]
    open_worker = functools.partial(_open_worker, args)
    job = table_job(args.input, output, options, stream)
    quiet = args.quiet or bool(args.dry_run)  # a bar would count the lines of the whole table
    shown: dict[str, Any] = {"name": NAME, "unit": " pairs", "quiet": quiet}
    counts: Any = run_with_options(args, job, open_worker, jobs=count_jobs(args, specs), on_complete=describe, **shown)
    if counts is not None and not args.quiet:
        names = added_columns(reverse=len(specs) > 1, unknown_count=args.unknown_count)
        _summarise(Counts(**counts), names, time.perf_counter() - started)
    return 0


def _beginning(windows: Iterable[Window], lines: int | None) -> Iterator[Window]:
    """The windows up to that number of lines, or all."""
    for window in windows:
        yield window if lines is None else window.beginning(lines)
        if lines is not None:
            lines -= window.size
            if lines <= 0:
                return


def _open_worker(args: argparse.Namespace, number: int) -> RescoreWorker:
    options = start_worker(args, number, filter(None, [args.scorer, args.reverse_scorer]))
    scorers = Scorers(
        direct=open_model(args.scorer, options),
        reverse=open_model(args.reverse_scorer, options) if args.reverse_scorer else None,
        unknown_count=args.unknown_count,
        unescape=args.unescape,
        factors=parse_factors(args.factor) if args.factor else None,
        most_words=args.max_words,
    )
    return RescoreWorker(scorers)


class RescoreWorker:
    """Scores windows of a table."""

    def __init__(self, scorers: Scorers) -> None:
        self._scorers = scorers
        self.description: dict[str, Any] = {"scorer": scorers.direct.signature}
        if scorers.reverse is not None:
            self.description["reverse_scorer"] = scorers.reverse.signature

    def __call__(self, window: Window) -> Result:
        """The lines of the window with their new columns."""
        rescored = rescore_window(window, self._scorers)
        return Result((rescored.content,), rescored.counts._asdict())


def table_job(table: str, output: str, options: Mapping[str, Any], windows: Iterator[Window] | None) -> Job:
    """The job of rescoring a table by these options; ``windows`` are those of what is read once, without a journal."""

    def read() -> Iterator[tuple[Shard, Window]]:
        found = read_windows(table) if windows is None else windows
        return ((Shard.of(window.first, window.content), window) for window in found)

    description = {"input": table, "options": {name: options[name] for name in _OPTIONS}}
    return Job(table, read, (output,), description, files={table: table}, journaled=windows is None)


def check_factors(
    window: Window,
    columns: Fields,
    option: str | None,
    scorer: str | PairScorer,
    reverse_scorer: str | PairScorer | None,
) -> None:
    """Read the option; refuse a table with factors where it is missing, or models would meet unknown words alone.

    A model of source factors reads all factors of its source.
    """
    if option is not None:
        parse_factors(option)
        return
    phrases = phrases_of(window, columns)[:LINES_FOR_FACTORS]
    source, target = (look_factored([pair[side] for pair in phrases]) for side in (0, 1))
    if target or (source and (reverse_scorer is not None or not source_factors(scorer))):
        problem = "the words have factors (das|ART), which no model knows whole; say with --factor which one to score"
        raise FormatError(window.path, problem, line=window.first)


def write_table_metadata(
    output: str, options: Mapping[str, Any], *, first: Window, signatures: Mapping[str, str], counts: Counts
) -> None:
    """What the new table is: names and options, so that ``wire`` and a reader of next year know.

    ``first`` is the first window of the table that was read.
    """
    columns = {}
    for name in added_columns(reverse="reverse_scorer" in signatures, unknown_count=options["unknown_count"]):
        scorer, direction = ("reverse_scorer", "reverse") if name == REVERSE else ("scorer", "forward")
        columns[name] = f"direction:{direction}|{signatures[scorer]}"
    metadata = Metadata(
        input=options["input"],
        columns=columns,
        counts=counts._asdict(),
        options={name: options[name] for name in _OPTIONS},
        scores_before=first.scores,
        rules=first.rules,
        signatures=dict(signatures),
    )
    write_metadata(output, metadata)


def _remarks(window: Window, columns: Fields) -> Iterator[str]:
    """What of the first lines may be a mistake."""
    if columns.mark:
        effect = "it stays, the model does not read it, and Moses takes it for a part of the first word"
        yield f"begins with a byte order mark; {effect}"
    if window.rules:
        yield "a table of rules, which are scored by their words, without labels and non-terminals"
    bracketed = sum(ends_in_label(source) or ends_in_label(target) for source, target, *_ in columns.rows)
    if bracketed and not window.rules:
        yield (
            f"{bracketed:,} of the first {counted(window.size, 'phrase pair ends', 'phrase pairs end')}"
            " in a word like [this], which Moses drops; escape brackets as tokenizer.perl does"
        )
    runs = [source for source, _ in groupby(phrase_of(source) for source, *_ in columns.rows)]
    if len(runs) > len(set(runs)):
        yield (
            "lines with the same source do not stand together; the scores will be right, but much of"
            " the work is done more than once, and Moses' binarisers want a sorted table (LC_ALL=C sort)"
        )


def _summarise(counts: Counts, names: Sequence[str], seconds: float) -> None:
    """Say what was met."""
    pairs = max(counts.pairs, 1)
    scored = f"{counted(counts.pairs, 'distinct pair')} scored, {counts.pairs / max(seconds, 1e-9):,.0f} pairs/s"
    say(f"{NAME}: {counted(counts.lines, 'line')}, {scored}")
    mean = f"mean log {names[0]} {counts.log_prob / pairs:.4f}"
    if counts.reverse_log_prob:
        mean += f", mean log {names[1]} {counts.reverse_log_prob / pairs:.4f}"
    say(f"{NAME}: {mean}; {counted(counts.floored, 'probability', 'probabilities')} floored at 1e-43")
    unknown = f"{counts.unknown_source:,} of {counted(counts.source_words, 'source word')}"
    unknown += f", {counts.unknown_target:,} of {counted(counts.target_words, 'target word')}"
    say(f"{NAME}: unknown to the model: {unknown}")
    many = max(counts.unknown_target / max(counts.target_words, 1), counts.unknown_source / max(counts.source_words, 1))
    if many > _MANY_UNKNOWN:
        problem = f"{100 * many:.0f} % of the words of a side are unknown"
        say(f"{NAME}: warning: {problem}: is the table tokenised, cased and escaped like the model's corpus?")
