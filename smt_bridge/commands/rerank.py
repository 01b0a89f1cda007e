"""`smt-bridge rerank`: the best hypothesis of every list under given weights."""

from __future__ import annotations

import argparse

from nmt_core.commands.options import add_word_limit
from nmt_core.files import InputFile, OutputFile
from smt_bridge.commands.options import add_format_argument

RUN = "smt_bridge.lists.rerank:rerank"
_EXAMPLE = """example:
  smt-bridge rerank --nbest test.rich.gz --weights weights --source test.tok.en --detokenize fr \\
      --reference test.fr --report rerank.html > test.hyp.fr

One line per source line comes out, blank where the list has no hypothesis. With --detokenize the text and
the reference are plain; without it both are tokenised. Without --source, as many lines as the highest id asks for.

With --reference, on stderr: BLEU, chrF and TER of each system that made the list and of the choice, with sacrebleu's
signatures, 95 % confidence intervals and p-values against the best system alone; BLEU of the best choice; BLEU by
length of the source. --report writes all of it: a page (*.html, one file without network or scripts) or JSON (*.json,
docs/lists.md)."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.epilog = _EXAMPLE
    add, packed = parser.add_argument, "plain, gzip, xz or zstd, '-' for stdin"
    add("--nbest", type=InputFile, required=True, metavar="FILE", help=f"n-best list, {packed}")
    add_format_argument(parser)
    add("--weights", type=InputFile, required=True, metavar="FILE", help="weights of `tune`, or a moses.ini")
    add("--source", type=InputFile, metavar="FILE", help="tokenised source text: says how many lines there must be")
    add("--output", type=OutputFile, default="-", metavar="FILE", help="where the best hypotheses go ('-')")
    add("--nbest-output", type=OutputFile, metavar="FILE", help="also write the list, best first, with new totals")
    add("--detokenize", metavar="LANG", help="write plain text, joined as LANG is written")
    add("--lenient", action="store_true", help="features without weight, and the reverse, count 0")
    judged = parser.add_argument_group("judging")
    add = judged.add_argument
    add("--reference", type=InputFile, action="append", default=[], metavar="FILE", help="judge; repeatable")
    add("--report", type=OutputFile, metavar="FILE", help="write all of it, with every sentence: *.html or *.json")
    add_word_limit(judged, "judged line")
    add("--scorer", metavar="SPEC", help="model whose word scores and attention the page shows")
