"""`smt-bridge report`: a page about a rescored phrase table."""

from __future__ import annotations

import argparse

from nmt_core.files import InputFile, OutputFile

RUN = "smt_bridge.report.phrase_table:report"
_EXAMPLE = """example:
  smt-bridge report --table nmt-table.gz --output table.html

The page is one file that needs no network and no scripts. A name that ends in .json gets what it says for other
programs (docs/lists.md). Pages about n-best lists are those of `smt-bridge rerank --report`."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.epilog = _EXAMPLE
    parser.add_argument(
        "--table", type=InputFile, required=True, metavar="FILE", help="a table that `rescore-table` made"
    )
    parser.add_argument("--output", type=OutputFile, required=True, metavar="FILE", help="the page, or *.json")
