"""`smt-bridge rescore-table`: neural scores as new columns of a Moses table of phrases or rules."""

from __future__ import annotations

import argparse

from nmt_core.commands.options import add_shard_arguments, add_word_limit
from nmt_core.commands.parser import positive
from nmt_core.files import InputFile, OutputFile
from smt_bridge.commands.options import add_scoring_arguments

RUN = "smt_bridge.tables.rescore:rescore_files"
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
    add = parser.add_argument
    add(
        "input",
        type=InputFile,
        metavar="TABLE",
        help="table of phrases or rules, plain, gzip, xz or zstd, '-' for stdin",
    )
    add(
        "--scorer",
        required=True,
        metavar="SPEC",
        help="model: DIR, DIR,DIR (an ensemble), ct2:DIR, hf:DIR or grpc:HOST:PORT[/MODEL]",
    )
    add("--reverse-scorer", metavar="SPEC", help="a model of target to source, for p(source|target)")
    add("--unknown-count", action="store_true", help="add exp(number of unknown target words)")
    add("--unescape", action="store_true", help="undo &apos; and the like before scoring")
    add(
        "--factor",
        metavar="N",
        help="of words with factors (das|ART) score this one, from 0; or SOURCE,TARGET."
        " Models of source factors read all of their source",
    )
    where = parser.add_mutually_exclusive_group(required=True)
    where.add_argument(
        "--output", type=OutputFile, metavar="FILE", help="where to write; *.gz is compressed, '-' for stdout"
    )
    where.add_argument("--dry-run", type=positive, metavar="N", help="score the first N lines only, to stdout")
    add("--quiet", action="store_true", help="no progress, no summary")
    add_word_limit(parser, "phrase")
    add_shard_arguments(parser)
    add_scoring_arguments(parser)
