"""``nmt-core aer``: the alignment error rate of alignments beside those of people (Och and Ney 2003)."""

from __future__ import annotations

import argparse

from nmt_core.files import InputFile

RUN = "nmt_core.text.commands.aer:judge_alignments"

_EPILOG = """\
examples:
  nmt-core score --model runs/en-de --alignments test.align test.tok.en test.tok.de > logprobs
  nmt-core aer gold.align test.align

Both files have a line of source-target points for each pair, from 0. In GOLD 1-2 is a sure link and 1?2 a possible
one; A is what is judged: AER = 1 - (|A and S| + |A and P|) / (|A| + |S|).
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Define the options."""
    parser.epilog = _EPILOG
    parser.add_argument("gold", type=InputFile, metavar="GOLD", help="sure (1-2) and possible (1?2) links")
    parser.add_argument("alignments", type=InputFile, metavar="A", help="the links to judge")
