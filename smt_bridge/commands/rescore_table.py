"""`smt-bridge rescore-table`: neural scores as new columns of a Moses table of phrases or rules."""

from __future__ import annotations

import argparse
import functools
import time
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import TYPE_CHECKING, Any

from nmt_core.base.errors import ConfigError
from nmt_core.base.messages import counted
from nmt_core.commands.options import add_part_arguments, add_word_limit
from nmt_core.files import InputFile, OutputFile, suffix_of
from nmt_core.jobs.work import Work, check_shards, engine_of, remark
from smt_bridge.commands.scoring_options import (
    add_backoff_argument,
    add_scoring_arguments,
)
from smt_bridge.model_specs import count_jobs, worker_options

if TYPE_CHECKING:
    from nmt_core.jobs.run import Job
    from smt_bridge.tables.rescore import RescoreWorker
    from smt_bridge.tables.scoring import Counts
    from smt_bridge.tables.table import Window

NAME = "rescore-table"
_MANY_UNKNOWN = 0.25  # of the words of distinct pairs, where rare ones weigh more than in running text
_EXAMPLE = """example:
  smt-bridge rescore-table phrase-table.gz --scorer runs/en-fr --reverse-scorer runs/fr-en --output nmt-table.gz
  smt-bridge wire moses.ini --table nmt-table.gz --output nmt.ini

columns, in this order, behind the scores that are there (Moses takes the natural logarithm itself):
  p(target|source)   by --scorer; six digits, at least 1e-43
  p(source|target)   by --reverse-scorer, a model of target to source
  exp(unknown)       with --unknown-count: e to the number of target words unknown to the model

Rules of moses_chart (der [X][X] [X] ||| the [X][X] [X] ||| ...) are scored by their words: labels, non-terminals, <s>
and </s> are left out; rules without source words get 1. A table is one of rules if both sides of each of its first 100
lines end in a label such as [X].

Order and number of lines and all other fields stay byte for byte. Beside OUT.gz, OUT.gz.json records what was
added. Filter and prune the table first, since the work grows with the number of pairs; binarise it afterwards with
Moses' programs, by the commands that wire prints.

A command that was interrupted goes on when it is started again.
On a cluster several commands can share the work, and one without --shards puts it together:
  smt-bridge rescore-table phrase-table.gz --scorer runs/en-fr --output nmt-table.gz --shards 1-20"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.epilog = _EXAMPLE
    parser.add_argument(
        "input",
        type=InputFile,
        metavar="TABLE",
        help="table of phrases or rules, plain, gzip, xz or zstd, '-' for stdin",
    )
    parser.add_argument(
        "--scorer",
        required=True,
        metavar="SPEC",
        help="model: DIR, DIR,DIR (an ensemble) or grpc:HOST:PORT[/MODEL]",
    )
    parser.add_argument("--reverse-scorer", metavar="SPEC", help="a model of target to source, for p(source|target)")
    parser.add_argument("--unknown-count", action="store_true", help="add exp(number of unknown target words)")
    add_backoff_argument(parser)
    parser.add_argument("--unescape", action="store_true", help="undo &apos; and the like before scoring")
    parser.add_argument(
        "--factor",
        metavar="N",
        help="of words with factors (das|ART) score this one, from 0; or SOURCE,TARGET."
        " Models of source factors read all of their source",
    )
    parser.add_argument(
        "--output", type=OutputFile, metavar="FILE", help="where to write; *.gz is compressed, '-' for stdout"
    )
    parser.add_argument("--dry-run", type=int, metavar="N", help="score the first N lines only, to stdout")
    parser.add_argument("--quiet", action="store_true", help="no progress, no summary")
    add_word_limit(parser, "phrase")
    add_part_arguments(parser)
    add_scoring_arguments(parser)


def run(args: argparse.Namespace) -> int:
    """Check the input's first lines, then do the job."""
    from nmt_core.jobs.run import are_files
    from smt_bridge.metadata import new_metadata
    from smt_bridge.tables.rescore import check_factors
    from smt_bridge.tables.table import read_windows

    output = _output_of(args)
    record = new_metadata(output)  # refused before the work, not behind it
    windows = read_windows(args.input, rules=True)
    first = next(windows)  # a wrong file is found before a model is loaded
    check_factors(first, args.factor, args.scorer, args.reverse_scorer)
    _remark_on(first, quiet=args.quiet)
    check_shards(args, args.input, [output], given_as="TABLE")
    is_stream = not are_files(args.input, [output])
    _work(args, output, windows=chain([first], windows) if is_stream else None, first=first, record=record)
    return 0


def _work(
    args: argparse.Namespace, output: str, *, windows: Iterable[Window] | None, first: Window, record: str | None
) -> None:
    """Score the table and say what was met; ``windows`` are those of a stream, ``first`` is the first one."""
    from smt_bridge.tables.rescore import sum_counts, write_record

    def finish(pieces: list[dict[str, float]], signatures: dict[str, Any]) -> None:
        if record is not None:
            write_record(output, vars(args), first=first, signatures=signatures, counts=sum_counts(pieces))

    started = time.perf_counter()
    specs = [args.scorer, *([args.reverse_scorer] if args.reverse_scorer else [])]
    open_worker = functools.partial(_open_worker, args, suffix_of(output))
    work = Work(NAME, " pairs", open_worker, count_jobs(args, specs), args.quiet, engine_of(args))
    pieces = work.run(_job(args, output, windows), args, finish=finish)
    if pieces is not None and not args.quiet:
        _summarise(sum_counts(pieces), _columns(args), time.perf_counter() - started)


def _open_worker(args: argparse.Namespace, suffix: str, number: int) -> RescoreWorker:
    from nmt_core.base.memory import keep_memory_of_tensors
    from smt_bridge.factors import parse_factors
    from smt_bridge.models import open_model
    from smt_bridge.tables.rescore import RescoreWorker
    from smt_bridge.tables.scoring import Scorers

    keep_memory_of_tensors()
    options = worker_options(args, number)
    direct = options._replace(unknown_backoff=args.unknown_backoff)
    scorers = Scorers(
        direct=open_model(args.scorer, direct),
        reverse=open_model(args.reverse_scorer, options) if args.reverse_scorer else None,
        unknown_count=args.unknown_count,
        unescape=args.unescape,
        factors=parse_factors(args.factor) if args.factor else None,
        most_words=args.max_words,
    )
    return RescoreWorker(scorers, suffix=suffix)


def _job(args: argparse.Namespace, output: str, windows: Iterable[Window] | None) -> Job[Window]:
    """The job; ``windows`` are those of what is read once."""
    from smt_bridge.tables.rescore import table_job

    options = ("scorer", "reverse_scorer", "unknown_count", "unknown_backoff", "unescape", "factor", "dtype", "softmax")
    described = {name: getattr(args, name) for name in options}
    beginning = None if windows is None else _beginning(windows, args.dry_run)
    return table_job(args.input, output, described, beginning)


def _output_of(args: argparse.Namespace) -> str:
    if args.dry_run is not None:
        if args.dry_run < 1:
            raise ConfigError("--dry-run needs a number of lines, at least 1")
        if args.output not in (None, "-"):
            raise ConfigError("--dry-run writes to stdout; leave out --output")
        return "-"
    if args.output is None:
        raise ConfigError("--output is missing; give a file such as phrase-table.nmt.gz, or - for stdout")
    return str(args.output)


def _beginning(windows: Iterable[Window], lines: int | None) -> Iterator[Window]:
    """The windows up to that number of lines, or all."""
    for window in windows:
        yield window if lines is None else window.beginning(lines)
        if lines is not None:
            lines -= window.size
            if lines <= 0:
                return


def _columns(args: argparse.Namespace) -> tuple[str, ...]:
    from smt_bridge.tables.scoring import column_names

    return column_names(reverse=bool(args.reverse_scorer), unknown_count=args.unknown_count)


def _remark_on(window: Window, *, quiet: bool) -> None:
    from smt_bridge.tables.table import bracketed_last_tokens, is_grouped, split_window

    if quiet:
        return
    if window.content.startswith(b"\xef\xbb\xbf"):
        effect = "it stays, the model does not read it, and Moses takes it for a part of the first word"
        _say(f"{window.path}: begins with a byte order mark; {effect}")
    columns = split_window(window)
    bracketed = 0 if window.rules else bracketed_last_tokens(columns)
    if window.rules:
        _say(f"{window.path}: a table of rules, which are scored by their words, without labels and non-terminals")
    if bracketed:
        _say(
            f"{window.path}: {bracketed:,} of the first {counted(window.size, 'phrase pair ends', 'phrase pairs end')}"
            " in a word like [this], which Moses drops; escape brackets as tokenizer.perl does"
        )
    if not is_grouped(columns.sources):
        _say(
            f"{window.path}: lines with the same source do not stand together; the scores will be right, but much of"
            " the work is done more than once, and Moses' binarisers want a sorted table (LC_ALL=C sort)"
        )


def _summarise(counts: Counts, columns: tuple[str, ...], seconds: float) -> None:
    pairs = max(counts.pairs, 1)
    scored = f"{counted(counts.pairs, 'distinct pair')} scored, {counts.pairs / max(seconds, 1e-9):,.0f} pairs/s"
    _say(f"{counted(counts.lines, 'line')}, {scored}")
    mean = f"mean log {columns[0]} {counts.log_prob / pairs:.4f}"
    if counts.reverse_log_prob:
        mean += f", mean log {columns[1]} {counts.reverse_log_prob / pairs:.4f}"
    _say(f"{mean}; {counted(counts.floored, 'probability', 'probabilities')} floored at 1e-43")
    unknown = f"{counts.unknown_source:,} of {counted(counts.source_words, 'source word')}"
    _say(f"unknown to the model: {unknown}, {counts.unknown_target:,} of {counted(counts.target_words, 'target word')}")
    many = max(counts.unknown_target / max(counts.target_words, 1), counts.unknown_source / max(counts.source_words, 1))
    if many > _MANY_UNKNOWN:
        _say(
            f"warning: {100 * many:.0f} % of the words of a side are unknown: "
            "is the table tokenised, cased and escaped like the model's corpus?"
        )


def _say(text: str) -> None:
    remark(NAME, text)
