"""`smt-bridge filter-table`: what of a table a text needs, and the better targets of every source phrase."""

from __future__ import annotations

import argparse

from nmt_core.commands.parser import positive
from nmt_core.files import InputFile, OutputFile

RUN = "smt_bridge.tables.filter:filter_table"
_EXAMPLE = """examples:
  smt-bridge filter-table nmt-table.gz --keep 20 --minimum-share 0.001 --output small-table.gz
  smt-bridge filter-table phrase-table.gz --by 3 --keep 20 --output small-table.gz

  smt-bridge filter-table phrase-table.gz --sources val.tok.en --sources test.tok.en --output test-table.gz
  smt-bridge filter-table reordering-table.gz --sources test.tok.en --output test-reordering.gz

--sources keeps the lines whose source phrase occurs in a line of FILE, words side by side: all that Moses looks up
for that text, so that scores are paid for nothing else. It takes phrase tables, reordering tables and rules of
moses_chart; these occur with a word or more in the place of each non-terminal, and those of glue grammars always. FILE
is tokenised, cased and escaped as the decoder's input.

COLUMN is a name of nmt-table.gz.json or the number of a score from 1 (3: phi(target|source) of Moses). Targets as good
as the last one of --keep are kept too. Kept lines stay byte for byte and in their order; the record goes along, so
that `wire` knows the columns. Numbers of lines go to standard error. Memory does not grow with the table."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.epilog = _EXAMPLE
    add = parser.add_argument
    add("input", type=InputFile, metavar="TABLE", help="phrase table, plain, gzip, xz or zstd, '-' for stdin")
    add(
        "--sources",
        type=InputFile,
        action="append",
        default=[],
        metavar="FILE",
        help="keep lines whose source occurs in this text; several texts: repeat it",
    )
    add(
        "--input-factor",
        metavar="N[,N...]",
        help="of words with factors in --sources (das|ART) those that TABLE has, from 0, as in moses.ini",
    )
    add("--by", default="p(target|source)", metavar="COLUMN", help="the score that counts (%(default)s)")
    add("--keep", type=positive, metavar="K", help="at most the best K targets of a source, and their equals")
    add("--minimum-share", type=float, default=0.0, metavar="S", help="at least this share of a source's best score")
    add("--minimum", type=float, default=0.0, metavar="P", help="at least this score")
    add("--output", type=OutputFile, default="-", metavar="FILE", help="where to write; *.gz is compressed ('-')")
    add("--quiet", action="store_true", help="no progress")
