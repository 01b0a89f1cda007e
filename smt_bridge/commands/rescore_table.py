"""`smt-bridge rescore-table`: neural scores as new columns of a Moses table of phrases or rules."""

from __future__ import annotations

import argparse
import functools
import time
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from typing import TYPE_CHECKING, Any

from nmt_core.commands.long_lines import add_word_limit
from nmt_core.commands.parts import Work, add_part_arguments, engine_of, is_done_in_parts, remark, summed
from nmt_core.errors import ConfigError
from nmt_core.messages import counted
from smt_bridge.commands.file_types import RecordedInput, RecordedOutput, ScorerSpec
from smt_bridge.commands.scoring_options import (
    add_backoff_argument,
    add_scoring_arguments,
    count_jobs,
    scorer_options,
)
from smt_bridge.commands.table_binarising import binarise_output, check_binarising, check_rules

if TYPE_CHECKING:
    from nmt_core.jobs.manifest import Shard
    from nmt_core.jobs.parts import Piece
    from nmt_core.jobs.run import Job
    from nmt_core.jobs.workers import Worker
    from smt_bridge.formats.phrase_table import Window
    from smt_bridge.phrase_scoring import Counts, Scorers

NAME = "rescore-table"
HELP = "add neural scores to a Moses phrase or rule table"
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
added. Filter and prune the table first, binarise it afterwards: the work grows with the number of pairs. With Moses'
programs on the PATH --binarise does that; sorted tables (LC_ALL=C sort) only, tables of rules with ondisk only.

A command that was interrupted goes on when it is started again; OUT.gz.parts holds the finished parts.
On a cluster several commands can share the work, and one without --shards puts the parts together:
  smt-bridge rescore-table phrase-table.gz --scorer runs/en-fr --output nmt-table.gz --shards 1-20"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.epilog = _EXAMPLE
    parser.add_argument(
        "input",
        type=RecordedInput,
        metavar="TABLE",
        help="table of phrases or rules, plain, gzip, xz or zstd, '-' for stdin, or a folder that CreateOnDiskPt made",
    )
    parser.add_argument(
        "--scorer",
        type=ScorerSpec,
        required=True,
        metavar="SPEC",
        help="model: DIR, DIR,DIR (an ensemble) or grpc:HOST:PORT[/MODEL]",
    )
    parser.add_argument(
        "--reverse-scorer", type=ScorerSpec, metavar="SPEC", help="a model of target to source, for p(source|target)"
    )
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
        "--output", type=RecordedOutput, metavar="FILE", help="where to write; *.gz is compressed, '-' for stdout"
    )
    parser.add_argument(
        "--binarise",
        choices=["compact", "probing", "ondisk"],
        help="then also make FILE binary, by processPhraseTableMin, CreateProbingPT or CreateOnDiskPt of Moses",
    )
    parser.add_argument("--dry-run", type=int, metavar="N", help="score the first N lines only, to stdout")
    parser.add_argument("--quiet", action="store_true", help="no progress, no summary")
    add_word_limit(parser, "phrase")
    add_part_arguments(parser)
    add_scoring_arguments(parser)


def run(args: argparse.Namespace) -> int:
    """Check the input's first lines, then stream, or work through the shards of a file."""
    from smt_bridge.formats.phrase_table import read_windows
    from smt_bridge.formats.source_groups import check_sorted
    from smt_bridge.signature import new_sidecar
    from smt_bridge.tables import check_factors

    output = _output_of(args)
    check_binarising(args, output)
    record = new_sidecar(output)  # refused before the work, not behind it
    windows = read_windows(args.input, rules=True)
    first = next(windows)  # a wrong file is found before a model is loaded
    check_rules(args, first)
    check_factors(first, args.factor, args.scorer, args.reverse_scorer)
    _remark_on(first, quiet=args.quiet)
    in_parts = is_done_in_parts(args, args.input, output, given_as="TABLE")
    if args.binarise and in_parts:
        check_sorted(args.input)
    _work(args, output, windows=chain([first], windows), first=first, record=record, in_parts=in_parts)
    if args.binarise:
        if not in_parts:  # a stream, which is read once
            check_sorted(output)
        _binarise(args, output, first)
    return 0


def _work(
    args: argparse.Namespace,
    output: str,
    *,
    windows: Iterable[Window],
    first: Window,
    record: str | None,
    in_parts: bool,
) -> None:
    """Score the table, with its record, and say what was met; ``windows`` are a stream's, ``first`` is one of them."""
    from smt_bridge.phrase_scoring import Counts
    from smt_bridge.tables import write_record

    def finish(pieces: list[dict[str, float]], signatures: dict[str, Any]) -> None:
        if record is not None:
            write_record(output, vars(args), first=first, signatures=signatures, counts=summed(Counts, pieces))

    started = time.perf_counter()
    specs = [args.scorer, *([args.reverse_scorer] if args.reverse_scorer else [])]
    make_job, open_worker = functools.partial(_job, args, output), functools.partial(_open_worker, args)
    work = Work(NAME, " pairs", make_job, open_worker, count_jobs(args, specs), args.quiet, engine_of(args))
    if in_parts:
        pieces = work.in_parts(shards=args.shards, restart=args.restart, finish=finish)
    else:
        pieces = work.as_stream(_beginning(windows, args.dry_run), output, record=record, finish=finish)
    if pieces is not None and not args.quiet:
        _summarise(summed(Counts, pieces), _columns(args), time.perf_counter() - started)


class RescoreWorker:
    """Scores windows of a table; each output is a file of its own where ``suffix`` says compressed."""

    def __init__(self, scorers: Scorers, *, suffix: str) -> None:
        self._scorers = scorers
        self._suffix = suffix

    @property
    def description(self) -> dict[str, Any]:
        """The signatures of the models."""
        return dict(self._scorers.signatures)

    def __call__(self, window: Window) -> Piece:
        """The lines of the window with their new columns."""
        from nmt_core.files import pack
        from nmt_core.jobs.parts import Piece
        from smt_bridge.phrase_scoring import rescore_chunk

        rescored = rescore_chunk(window, self._scorers)
        content = pack(rescored.content, self._suffix)
        return Piece(content, rescored.counts._asdict())


def _open_worker(args: argparse.Namespace, suffix: str, number: int) -> Worker[Window, Piece]:
    from nmt_core.memory import keep_memory_of_tensors
    from smt_bridge import scorers as opening
    from smt_bridge.formats.factors import parse_factors
    from smt_bridge.phrase_scoring import Scorers

    keep_memory_of_tensors()
    options = scorer_options(args, number)
    direct = options._replace(unknown_backoff=args.unknown_backoff)
    scorers = Scorers(
        direct=opening.open_scorer(args.scorer, direct),
        reverse=opening.open_scorer(args.reverse_scorer, options) if args.reverse_scorer else None,
        unknown_count=args.unknown_count,
        unescape=args.unescape,
        factors=parse_factors(args.factor) if args.factor else None,
        most_words=args.max_words,
    )
    return RescoreWorker(scorers, suffix=suffix)


def _job(args: argparse.Namespace, output: str, progress: Callable[[str, int], None]) -> Job[Window]:
    from nmt_core.files import ShareRead
    from nmt_core.jobs.manifest import Input
    from nmt_core.jobs.run import Job
    from smt_bridge.formats.phrase_table import read_windows
    from smt_bridge.signature import sidecar_path

    options = ("scorer", "reverse_scorer", "unknown_count", "unknown_backoff", "unescape", "factor", "dtype", "softmax")
    description = {"input": args.input, "options": {name: getattr(args, name) for name in options}}
    share = ShareRead()
    source = Input(args.input, functools.partial(read_windows, args.input, share, rules=True), _shard_of, share)
    record, files = sidecar_path(output), {args.input: args.input}
    return Job(output, description, source, progress=progress, record=record, files=files)


def _shard_of(window: Window) -> Shard:
    from nmt_core.jobs.manifest import shard_of

    return shard_of(window.first, window.content)


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


def _binarise(args: argparse.Namespace, output: str, first: Window) -> None:
    """Make the table that was written binary; ``first`` is the first window of what was read."""
    scores = first.scores + len(_columns(args))
    path = binarise_output(args.binarise, output, scores=scores, first=first)
    if not args.quiet:
        _say(f"{path}: made of {output}, with {counted(scores, 'score')}")


def _columns(args: argparse.Namespace) -> tuple[str, ...]:
    from smt_bridge.phrase_scoring import column_names

    return column_names(reverse=bool(args.reverse_scorer), unknown_count=args.unknown_count)


def _remark_on(window: Window, *, quiet: bool) -> None:
    from smt_bridge.formats.phrase_table import bracketed_last_tokens, is_grouped, split_window

    if quiet:
        return
    if window.content.startswith(b"\xef\xbb\xbf"):
        _say(f"{window.path}: begins with a byte order mark; it stays, and Moses takes it for a part of the first word")
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
