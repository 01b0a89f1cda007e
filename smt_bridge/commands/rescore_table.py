"""`smt-bridge rescore-table`: neural scores as new columns of a Moses phrase table."""

from __future__ import annotations

import argparse
import contextlib
import json
import sys
import time
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nmt_core.errors import ConfigError

if TYPE_CHECKING:
    from smt_bridge.formats.phrase_table import Window
    from smt_bridge.phrase_scoring import Counts, Scorers

NAME = "rescore-table"
HELP = "add neural scores to a Moses phrase table"
SIDECAR = ".json"
_EXAMPLE = """example:
  smt-bridge rescore-table phrase-table.gz --scorer runs/en-fr --reverse-scorer runs/fr-en --output nmt-table.gz
  smt-bridge wire moses.ini --table nmt-table.gz --output nmt.ini

columns, in this order, behind the scores that are there (Moses takes the natural logarithm itself):
  p(target|source)   by --scorer; six digits, at least 1e-43
  p(source|target)   by --reverse-scorer, a model of target to source
  exp(unknown)       with --unknown-count: e to the number of target words unknown to the model

Order and number of lines and all other fields stay byte for byte. Beside OUT.gz, OUT.gz.json records what was
added. Filter and prune the table first, binarise it afterwards: the work grows with the number of pairs."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.epilog = _EXAMPLE
    parser.add_argument("input", metavar="TABLE", help="phrase table, plain or gzip, '-' for stdin")
    parser.add_argument(
        "--scorer", required=True, metavar="SPEC", help="model: DIR, DIR,DIR (an ensemble) or grpc:HOST:PORT[/MODEL]"
    )
    parser.add_argument("--reverse-scorer", metavar="SPEC", help="a model of target to source, for p(source|target)")
    parser.add_argument("--unknown-count", action="store_true", help="add exp(number of unknown target words)")
    parser.add_argument("--unescape", action="store_true", help="undo &apos; and the like before scoring")
    parser.add_argument("--output", metavar="FILE", help="where to write; *.gz is compressed, '-' for stdout")
    parser.add_argument("--dry-run", type=int, metavar="N", help="score the first N lines only, to stdout")
    parser.add_argument("--quiet", action="store_true", help="no progress, no summary")


def run(args: argparse.Namespace) -> int:
    """Check the input's first lines, open the scorers, rescore."""
    from smt_bridge.formats.phrase_table import read_windows
    from smt_bridge.phrase_scoring import Scorers
    from smt_bridge.scorers import open_scorer

    output = _output_of(args)
    windows = read_windows(args.input)
    first = next(windows)  # a wrong file is found before a model is loaded
    _remark_on(first, quiet=args.quiet)
    scorers = Scorers(
        direct=open_scorer(args.scorer),
        reverse=open_scorer(args.reverse_scorer) if args.reverse_scorer else None,
        unknown_count=args.unknown_count,
        unescape=args.unescape,
    )
    started = time.perf_counter()
    wanted = _beginning(chain([first], windows), args.dry_run)
    counts = rescore_table(wanted, scorers, output=output, sidecar=_sidecar(args, scorers, first), quiet=args.quiet)
    if not args.quiet:
        _summarise(counts, scorers, time.perf_counter() - started)
    return 0


def rescore_table(
    windows: Iterable[Window], scorers: Scorers, *, output: str, sidecar: dict[str, Any], quiet: bool = True
) -> Counts:
    """Rescore all windows into ``output``; a file gets ``sidecar`` and the counts in ``output.json`` beside it."""
    from tqdm import tqdm

    from nmt_core.files import open_output
    from smt_bridge.formats.phrase_table import write_table_lines
    from smt_bridge.phrase_scoring import Counts, rescore_chunk

    counts = Counts()
    with open_output(output) as stream, _progress(tqdm, quiet=quiet) as progress:
        for window in windows:
            rescored = rescore_chunk(window, scorers)
            write_table_lines(stream, rescored.lines)
            counts = counts.plus(rescored.counts)
            progress.update(len(window.lines))
        if output != "-":
            Path(output + SIDECAR).unlink(missing_ok=True)  # never the old record beside the new table
    if output != "-":
        with open_output(output + SIDECAR) as stream:
            stream.write(json.dumps({**sidecar, "counts": counts._asdict()}, indent=2).encode() + b"\n")
    return counts


def _progress(bar: Any, *, quiet: bool) -> Any:
    seconds = 0.5 if sys.stderr.isatty() else 30.0  # a log file needs no line every half second
    return bar(desc=NAME, unit=" pairs", unit_scale=True, file=sys.stderr, mininterval=seconds, disable=quiet)


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
        yield window if lines is None else window._replace(lines=window.lines[:lines])
        if lines is not None:
            lines -= len(window.lines)
            if lines <= 0:
                return


def _sidecar(args: argparse.Namespace, scorers: Scorers, first: Window) -> dict[str, Any]:
    """What the new table is: names and signatures, so that `wire` and a reader of next year know."""
    signatures = {"scorer": scorers.direct.signature}
    if scorers.reverse is not None:
        signatures["reverse_scorer"] = scorers.reverse.signature
    options = ("input", "scorer", "reverse_scorer", "unknown_count", "unescape")
    return {
        "scores_before": first.scores,
        "added": list(scorers.columns),
        "signatures": signatures,
        "options": {name: getattr(args, name) for name in options},
    }


def _remark_on(window: Window, *, quiet: bool) -> None:
    from smt_bridge.formats.phrase_table import bracketed_last_tokens, split_window

    if quiet:
        return
    if window.lines[0].startswith(b"\xef\xbb\xbf"):
        _say(f"{window.path}: begins with a byte order mark; Moses takes it for a part of the first word")
    bracketed = bracketed_last_tokens(split_window(window))
    if bracketed:
        _say(
            f"{window.path}: {bracketed} phrase pairs of the first {len(window.lines)} end in a word like [this], "
            "which Moses drops; escape brackets as tokenizer.perl does"
        )


def _summarise(counts: Counts, scorers: Scorers, seconds: float) -> None:
    pairs = max(counts.pairs, 1)
    _say(f"{counts.lines} lines, {counts.pairs} distinct pairs scored, {counts.pairs / max(seconds, 1e-9):.0f} pairs/s")
    mean = f"mean log {scorers.columns[0]} {counts.log_prob / pairs:.4f}"
    if scorers.reverse is not None:
        mean += f", mean log {scorers.columns[1]} {counts.reverse_log_prob / pairs:.4f}"
    _say(f"{mean}; {counts.floored} probabilities floored at 1e-43")
    unknown = f"{counts.unknown_source} of {counts.source_words} source words"
    _say(f"unknown to the model: {unknown}, {counts.unknown_target} of {counts.target_words} target words")
    if counts.unknown_target * 2 > counts.target_words or counts.unknown_source * 2 > counts.source_words:
        _say("most words are unknown: is the table tokenised, cased and escaped like the model's corpus?")


def _say(remark: str) -> None:
    with contextlib.suppress(BrokenPipeError):
        print(f"{NAME}: {remark}", file=sys.stderr)
