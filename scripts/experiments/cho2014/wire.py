"""Wiring of generated phrases: a second table beside that of a moses.ini, or both as one table."""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from pathlib import Path

from nmt_core.base.errors import ConfigError
from nmt_core.base.messages import counted, say
from nmt_core.files import InputFile, OutputFile, open_output, read_lines
from scripts.experiments.cho2014.second_table import with_second_table
from scripts.experiments.cho2014.table_merge import Lexicons, check_direction, merged_lines, read_generated
from smt_bridge.errors import FormatError, WiringError
from smt_bridge.features.lexical import Lexicon
from smt_bridge.metadata import find_metadata, metadata_path, new_metadata
from smt_bridge.moses.ini import Feature, MosesIni, read_ini
from smt_bridge.moses_lines import LINES_FOR_FACTORS, factors_of, look_factored
from smt_bridge.tables.lines import check_beginning
from smt_bridge.tables.scoring import DIRECT, REVERSE, UNKNOWN
from smt_bridge.tables.table import read_windows, split_window
from smt_bridge.tables.wire import START_WEIGHT, TUNING, check_unpacked, unfound_paths

NAME = "wire"
RUN = "scripts.experiments.cho2014.wire:wire"
_EXAMPLE = """examples:
  python -m scripts.experiments.cho2014 wire moses.ini --second generated.gz --output two-tables.ini
  python -m scripts.experiments.cho2014 wire moses.ini --second generated.gz --merge one-table.gz \\
      --lex-f2e lex.f2e.gz --lex-e2f lex.e2f.gz --output one-table.ini

--second adds a table that `generate-phrases` made, with scores, weights and a decoding graph of its own; --backoff N
asks it only about phrases of up to N words that the other table lacks. --merge writes one table of both instead, of
phrases generated with --reverse-scorer: a generated pair gets the models' probabilities for phi, lexical weights of
Moses' formula, counts of 0, and in a last column e, where the others have 1. A rescored table is wired in first, by
`smt-bridge wire`."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.epilog = _EXAMPLE
    add = parser.add_argument
    add("ini", type=InputFile, metavar="MOSES.INI", help="the configuration of the decoder")
    add("--second", type=InputFile, required=True, metavar="FILE", help="a table of generate-phrases")
    add("--table-limit", type=int, metavar="N", help="targets of a source taken from --second (20)")
    add("--backoff", type=int, metavar="N", help="ask --second about unknown phrases of N words at most")
    add("--merge", type=OutputFile, metavar="NEW", help="write both as one table, and use that")
    add("--lex-f2e", type=InputFile, metavar="FILE", help="p(target word | source word), for --merge")
    add("--lex-e2f", type=InputFile, metavar="FILE", help="p(source word | target word), for --merge")
    add("--feature", metavar="NAME", help="which phrase table, where the file has several")
    add("--output", type=OutputFile, default="-", metavar="NEW.INI", help="where to write ('-')")


def wire(args: argparse.Namespace) -> int:
    """Write the new configuration, and with --merge the table of both."""
    _check_options(args)
    ini = read_ini(args.ini)
    record = None if args.merge is None else new_metadata(args.merge)
    feature = ini.phrase_table(args.feature)
    second = _columns_of_second(args.second)
    if args.merge is None:
        check_unpacked(args.second)
        edited, remarks = ini.with_absolute_paths(), unfound_paths(ini)
        weights = [START_WEIGHT if name.startswith("p") else 0.0 for name in second]
        edited, remark = _with_second(edited, feature, second, args, os.path.abspath(args.second), weights)
        remarks.insert(0, remark)
    else:
        table = _text_table(ini, feature)
        known = find_metadata(table)
        _merge_tables(args, table, [] if known is None else list(known.columns), second)
        if record is not None:
            Path(record).unlink(missing_ok=True)  # it describes the table that was there before
        edited = ini.with_phrase_scores(feature, path=os.path.abspath(args.merge), weights=[0.0])
        edited, remarks = edited.with_absolute_paths(), unfound_paths(edited)
    with open_output(args.output) as stream:
        stream.write(edited.content)
    for remark in [*remarks, TUNING]:
        say(f"{NAME}: {remark}")
    return 0


def _check_options(args: argparse.Namespace) -> None:
    if args.merge is not None and (args.backoff, args.table_limit) != (None, None):
        raise ConfigError("--backoff and --table-limit are for two tables; leave out --merge")
    if (args.merge is None) != (args.lex_f2e is None) or (args.merge is None) != (args.lex_e2f is None):
        raise ConfigError("--merge, --lex-f2e and --lex-e2f go together")
    if args.merge == "-":
        raise ConfigError("--merge needs a file, which the ini can name")
    if args.merge is not None and args.merge.endswith((".xz", ".zst")):
        raise ConfigError("--merge needs a file that Moses reads, plain or *.gz")
    if (args.backoff is not None and args.backoff < 1) or (args.table_limit is not None and args.table_limit < 0):
        raise ConfigError("--backoff must be at least 1, and --table-limit at least 0 (no limit)")


def _columns_of_second(table: str) -> list[str]:
    """The columns of a generated table, all of them recorded beside it."""
    record, found = metadata_path(table), find_metadata(table)
    if found is None:
        raise ConfigError(f"--second {table}: there is no {record}, which generate-phrases writes beside it")
    columns = list(found.columns)
    line = next(read_lines(table, as_it_is=True), None)
    if line is None:
        raise FormatError(table, "the table is empty: nothing was generated")
    if check_beginning(table, [line]).scores != len(columns):
        raise WiringError(f"{table} has other scores than the {len(columns)} of {record}; give it as --table")
    return columns


def _source_factors(table: str) -> int:
    """How many factors each source word of a table has."""
    sources = split_window(next(read_windows(table)).beginning(LINES_FOR_FACTORS)).sources
    return factors_of(sources[0]) if look_factored(sources) else 1


def _with_second(
    ini: MosesIni,
    feature: Feature,
    columns: Sequence[str],
    args: argparse.Namespace,
    path: str,
    weights: Sequence[float],
) -> tuple[MosesIni, str]:
    """The ini with the second table at ``path``, and a remark for the user."""
    limit = 20 if args.table_limit is None else args.table_limit
    factors = _source_factors(args.second)
    edited, name = with_second_table(
        ini, feature, path=path, weights=weights, limit=limit, backoff=args.backoff, source_factors=factors
    )
    asked = f"for unknown phrases of up to {args.backoff} words" if args.backoff else "always"
    scores = counted(len(columns), "score")
    return edited, f"{name} is a second table with {scores} and a decoding graph of its own, asked {asked}"


def _text_table(ini: MosesIni, feature: Feature) -> str:
    """The table's file as text."""
    found = next((one.file for one in ini.paths if (one.line, one.key) == (feature.line, "path")), None)
    if found is None or feature.facts.role == "binary":
        problem = "is binarised" if feature.facts.role == "binary" else "is not there"
        raise ConfigError(f"--merge: the table of {feature.name} {problem}; name its text in the ini")
    return found


def _merge_tables(args: argparse.Namespace, table: str, columns: Sequence[str], second: Sequence[str]) -> None:
    """Write the merged table."""
    known: dict[str, bytes | int] = {DIRECT: 0, REVERSE: 1, UNKNOWN: b"1"}
    unknown = [name for name in columns if name not in known]
    if unknown:
        raise ConfigError(f"--merge: what a generated pair has in column {unknown[0]} of {table} is not known")
    if list(second) != [DIRECT, REVERSE]:
        raise ConfigError(f"--merge: {args.second} has no p(source|target); generate it with --reverse-scorer")
    if _source_factors(args.second) > 1:
        raise ConfigError(f"--merge: the words of {args.second} have factors, which lexicons do not know")
    generated = read_generated(args.second)
    lexicons = Lexicons(Lexicon(args.lex_f2e), Lexicon(args.lex_e2f))
    check_direction(generated, lexicons)
    with open_output(args.merge) as stream:
        for content in merged_lines(table, generated, [known[name] for name in columns], lexicons):
            stream.write(content)
