"""`smt-bridge report`: an HTML page about a reranking, or about a rescored phrase table."""

from __future__ import annotations

import argparse

from nmt_core.commands.options import add_word_limit
from nmt_core.commands.parser import from_zero
from nmt_core.files import InputFile, OutputFile
from smt_bridge.commands.list_options import add_format_argument

RUN = "smt_bridge.report.write:report"
_EXAMPLE = """examples:
  smt-bridge report --nbest test.rich.gz --weights weights --source test.tok.en --reference test.fr \\
      --detokenize fr --tuning tuning.json --scorer runs/search --output report.html
  smt-bridge report --table nmt-table.gz --output table.html

The page is one file that needs no network and no scripts. --tuning is what `tune --report` wrote: it adds the
spread of the weights and the ablation. --scorer adds every word's neural score and the attention. --json writes what
the page says for other programs (docs/report.md)."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.epilog = _EXAMPLE
    parser.add_argument("--nbest", type=InputFile, metavar="FILE", help="annotated n-best list")
    add_format_argument(parser)
    parser.add_argument("--weights", type=InputFile, metavar="FILE", help="weights of `tune`, or a moses.ini")
    parser.add_argument("--source", type=InputFile, metavar="FILE", help="tokenised source text, one line per id")
    parser.add_argument(
        "--reference", type=InputFile, action="append", default=[], metavar="FILE", help="reference, one line per id"
    )
    parser.add_argument("--detokenize", metavar="LANG", help="the reference is plain text, as LANG is written")
    parser.add_argument("--tuning", type=InputFile, metavar="FILE", help="what `tune --report` wrote")
    parser.add_argument("--scorer", metavar="SPEC", help="model whose word scores and attention are shown")
    parser.add_argument("--details", type=from_zero, default=20, metavar="N", help="sentences explained (20)")
    parser.add_argument(
        "--significance", choices=["bs", "ar", "none"], default="bs", help="test of the difference (bs)"
    )
    add_word_limit(parser, "judged line")
    parser.add_argument("--table", type=InputFile, metavar="FILE", help="instead: a table that `rescore-table` made")
    parser.add_argument("--output", type=OutputFile, required=True, metavar="FILE", help="the page")
    parser.add_argument("--json", type=OutputFile, metavar="FILE", help="also what it says, as JSON")
