"""`smt-bridge filter-table`: the better targets of every source phrase of a table, by one of its columns."""

from __future__ import annotations

import argparse
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nmt_core.errors import ConfigError
from nmt_core.files import InputFile, OutputFile, is_written_through
from nmt_core.messages import say
from nmt_core.whole_numbers import whole_number

if TYPE_CHECKING:
    from smt_bridge.table_filter import Counts, Rule

NAME = "filter-table"
HELP = "keep the better targets of every source of a phrase table"
_SIDECAR = ".json"
_EXAMPLE = """examples:
  smt-bridge filter-table nmt-table.gz --keep 20 --minimum-share 0.001 --output small-table.gz
  smt-bridge filter-table phrase-table.gz --by 3 --keep 20 --output small-table.gz

COLUMN is a name of nmt-table.gz.json or the number of a score from 1 (3: phi(target|source) of Moses). Targets as good
as the last one of --keep are kept too. Kept lines stay byte for byte and in their order; the record goes along, so
that `wire` knows the columns. Numbers of lines go to standard error. Memory does not grow with the table."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.epilog = _EXAMPLE
    parser.add_argument(
        "input",
        type=InputFile,
        metavar="TABLE",
        help="phrase table, plain, gzip, xz or zstd, '-' for stdin, or a folder that CreateOnDiskPt made",
    )
    parser.add_argument(
        "--by", default="p(target|source)", metavar="COLUMN", help="the score that counts (%(default)s)"
    )
    parser.add_argument(
        "--keep", type=int, metavar="K", help="at most the best K targets of a source, and their equals"
    )
    parser.add_argument(
        "--minimum-share", type=float, default=0.0, metavar="S", help="at least this share of a source's best score"
    )
    parser.add_argument("--minimum", type=float, default=0.0, metavar="P", help="at least this score")
    parser.add_argument(
        "--output", type=OutputFile, default="-", metavar="FILE", help="where to write; *.gz is compressed ('-')"
    )


def run(args: argparse.Namespace) -> int:
    """Filter, write the record, say what went."""
    from nmt_core.files import open_output
    from smt_bridge.formats.phrase_table import read_windows
    from smt_bridge.signature import check_record
    from smt_bridge.table_filter import Counts, filter_windows

    record = _record_of(args.input)
    rule = _rule(args, record)
    has_record = args.output != "-" and not is_written_through(args.output)
    if has_record:
        check_record(args.output + _SIDECAR)
    counts = Counts()
    with open_output(args.output) as stream:
        for chunk in filter_windows(read_windows(args.input), rule):
            stream.write(chunk.content)
            counts = counts.plus(chunk.counts)
        if has_record:
            Path(args.output + _SIDECAR).unlink(missing_ok=True)  # never the old record beside the new table
    if has_record and record is not None:
        _write_record(args, record, counts)
    _summarise(counts)
    return 0


def _record_of(table: str) -> dict[str, Any] | None:
    """What rescore-table wrote beside the table, if it did."""
    from nmt_core.small_files import read_json
    from smt_bridge.signature import read_sidecar

    path = table + _SIDECAR
    if table == "-" or not Path(path).is_file():
        return None
    read_sidecar(path)
    return dict(read_json(path))


def _rule(args: argparse.Namespace, record: dict[str, Any] | None) -> Rule:
    from smt_bridge.table_filter import Rule

    if args.keep is not None and args.keep < 1:
        raise ConfigError("--keep must be at least 1")
    if not 0.0 <= args.minimum_share <= 1.0:
        raise ConfigError("--minimum-share must be between 0 and 1")
    if not 0.0 <= args.minimum < math.inf:
        raise ConfigError("--minimum must be at least 0")
    return Rule(_column(args, record), args.keep, args.minimum_share, args.minimum)


def _column(args: argparse.Namespace, record: dict[str, Any] | None) -> int:
    """The place of the score, from 0."""
    from smt_bridge.phrase_scoring import UNKNOWN

    number = whole_number(args.by)
    if number is not None:
        if number < 1:
            raise ConfigError("--by counts scores from 1")
        return number - 1
    if record is None:
        problem = f"which score is {args.by}? There is no {args.input}{_SIDECAR}, so give its number"
        raise ConfigError(f"--by: {problem}, such as --by 5")
    if args.by not in record["added"] or args.by == UNKNOWN:
        there = ", ".join(name for name in record["added"] if name != UNKNOWN)
        raise ConfigError(f"--by {args.by}: {args.input}{_SIDECAR} has {there}; or give the number of a score")
    return int(record["scores_before"]) + int(record["added"].index(args.by))


def _write_record(args: argparse.Namespace, record: dict[str, Any], counts: Counts) -> None:
    import json

    from nmt_core.files import open_output

    options = {name: getattr(args, name) for name in ("input", "by", "keep", "minimum_share", "minimum")}
    filtered = [*record.get("filtered", []), {**options, "counts": {**counts._asdict(), "kept": counts.kept}}]
    with open_output(args.output + _SIDECAR) as stream:
        stream.write(json.dumps({**record, "filtered": filtered}, indent=2).encode() + b"\n")


def _summarise(counts: Counts) -> None:
    say(
        f"{NAME}: {counts.kept:,} of {counts.lines:,} pairs kept; {counts.below_minimum:,} below --minimum, "
        f"{counts.below_share:,} below --minimum-share, {counts.beyond_keep:,} beyond --keep"
    )
    if counts.sources_gone:
        say(f"{NAME}: {counts.sources_gone:,} of {counts.sources:,} sources have no target left")
