"""The tables that `smt-bridge wire` puts into a moses.ini: their columns, and a second one beside or in the first."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from nmt_core.base.errors import ConfigError
from nmt_core.base.messages import counted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from smt_bridge.moses.ini import Feature, MosesIni


def added_columns(table: str, added: int | None) -> list[str]:
    """The names of the added columns; WiringError when the record beside the table has another number."""
    from smt_bridge.errors import WiringError
    from smt_bridge.metadata import find_metadata, metadata_path

    if added is not None and added < 1:
        raise ConfigError("--added must be at least 1")
    record, found = metadata_path(table), find_metadata(table)
    if found is None:
        if added is None:
            raise ConfigError(f"how many columns were added to {table}? There is no {record}, so say it with --added N")
        return ["p"] * added
    names = list(found.columns)
    if added not in (None, len(names)):
        raise WiringError(f"--added is {added}, but {record} says that {len(names)} were added ({', '.join(names)})")
    return names


def columns_of_second(table: str) -> list[str]:
    """The columns of a generated table, all of them recorded beside it."""
    from nmt_core.files import read_lines
    from smt_bridge.errors import FormatError, WiringError
    from smt_bridge.metadata import find_metadata, metadata_path
    from smt_bridge.tables.lines import count_scores

    record, found = metadata_path(table), find_metadata(table)
    if found is None:
        raise ConfigError(f"--second {table}: there is no {record}, which generate-phrases writes beside it")
    columns = list(found.columns)
    line = next(read_lines(table, as_it_is=True), None)
    if line is None:
        raise FormatError(table, "the table is empty: nothing was generated")
    if count_scores(table, line) != len(columns):
        raise WiringError(f"{table} has other scores than the {len(columns)} of {record}; give it as --table")
    return columns


def _source_factors(table: str) -> int:
    """How many factors each source word of a table has."""
    from smt_bridge.factors import LINES_FOR_FACTORS, factors_of, look_factored
    from smt_bridge.tables.table import read_windows, split_window

    sources = split_window(next(read_windows(table)).beginning(LINES_FOR_FACTORS)).sources
    return factors_of(sources[0]) if look_factored(sources) else 1


def with_second(
    ini: MosesIni,
    feature: Feature,
    columns: Sequence[str],
    args: argparse.Namespace,
    path: str,
    weights: Sequence[float],
) -> tuple[MosesIni, str]:
    """The ini with the second table at ``path``, and a remark for the user."""
    from smt_bridge.moses.second_table import with_second_table

    limit = 20 if args.table_limit is None else args.table_limit
    factors = _source_factors(args.second)
    edited, name = with_second_table(
        ini, feature, path=path, weights=weights, limit=limit, backoff=args.backoff, source_factors=factors
    )
    asked = f"for unknown phrases of up to {args.backoff} words" if args.backoff else "always"
    scores = counted(len(columns), "score")
    return edited, f"{name} is a second table with {scores} and a decoding graph of its own, asked {asked}"


def text_table(ini: MosesIni, feature: Feature) -> str:
    """The table's file as text."""
    found = next((one.file for one in ini.paths if (one.line, one.key) == (feature.line, "path")), None)
    if found is None or feature.facts.role == "binary":
        problem = "is binarised" if feature.facts.role == "binary" else "is not there"
        raise ConfigError(f"--merge: the table of {feature.name} {problem}; give its text with --table and --added")
    return found


def merge_tables(args: argparse.Namespace, table: str, columns: Sequence[str], second: Sequence[str]) -> None:
    """Write the merged table."""
    from nmt_core.files import open_output
    from smt_bridge.features.lexicon import Lexicon
    from smt_bridge.table_merge import Lexicons, check_direction, merged_lines, read_generated
    from smt_bridge.tables.scoring import DIRECT, REVERSE, UNKNOWN

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
