"""`smt-bridge filter-table`: what of a table a text needs."""

from __future__ import annotations

import argparse

from nmt_core.files import InputFile, OutputFile

RUN = "smt_bridge.tables.filter:filter_table"
_EXAMPLE = """examples:
  smt-bridge filter-table phrase-table.gz --sources val.tok.en --sources test.tok.en --output test-table.gz
  smt-bridge filter-table reordering-table.gz --sources test.tok.en --output test-reordering.gz

Lines are kept whose source phrase occurs in a line of FILE, words side by side: all that Moses looks up for that text,
so that scores are paid for nothing else. Tables are phrase tables, reordering tables and rules of moses_chart; these
occur with a word or more in the place of each non-terminal; rules of glue grammars always do. FILE is tokenised,
cased and escaped as the decoder's input.

Kept lines stay byte for byte and in their order; the metadata go along, so that `wire` knows the columns. Numbers of
lines go to standard error. Memory does not grow with the table."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.epilog = _EXAMPLE
    add = parser.add_argument
    add("input", type=InputFile, metavar="TABLE", help="phrase table, plain, gzip, xz or zstd, '-' for stdin")
    add(
        "--sources",
        type=InputFile,
        action="append",
        required=True,
        metavar="FILE",
        help="keep lines whose source occurs in this text; several texts: repeat it",
    )
    add("--output", type=OutputFile, default="-", metavar="FILE", help="where to write; *.gz is compressed ('-')")
    add("--quiet", action="store_true", help="no progress")
