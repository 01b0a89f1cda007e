"""`smt-bridge rerank`: the best hypothesis of every list under given weights."""

from __future__ import annotations

import argparse

from nmt_core.commands.options import add_word_limit
from nmt_core.files import InputFile, OutputFile
from smt_bridge.commands.list_options import add_nbest_arguments

RUN = "smt_bridge.lists.rerank:rerank"
_EXAMPLE = """example:
  smt-bridge rerank --nbest test.rich.gz --weights weights --source test.tok.en --detokenize fr \\
      --reference test.fr --report rerank.json > test.hyp.fr

One line per source line comes out, blank where the list has no hypothesis. With --detokenize the text and
the reference are plain; without it both are tokenised. Without --source, as many lines as the highest id asks for.

With --reference, on stderr: BLEU, chrF and TER before (the first of each list) and after with sacrebleu's signatures,
95 % confidence intervals and p-values; BLEU of the best choice and of a choice by chance; BLEU by length of the source
and, with --known-words, on sentences without unknown words."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.epilog = _EXAMPLE
    add_nbest_arguments(parser)
    _add_choice(parser)
    _add_judgement(parser.add_argument_group("judging"))


def _add_choice(parser: argparse.ArgumentParser) -> None:
    """By which weights hypotheses are chosen, and where they go."""
    parser.add_argument(
        "--weights", type=InputFile, required=True, metavar="FILE", help="weights of `tune`, or a moses.ini"
    )
    parser.add_argument(
        "--source", type=InputFile, metavar="FILE", help="tokenised source text: says how many lines there must be"
    )
    parser.add_argument(
        "--output", type=OutputFile, default="-", metavar="FILE", help="where the best hypotheses go ('-')"
    )
    parser.add_argument(
        "--nbest-output", type=OutputFile, metavar="FILE", help="also write the list, best first, with new totals"
    )
    parser.add_argument("--detokenize", metavar="LANG", help="write plain text, joined as LANG is written")
    parser.add_argument(
        "--max-missing",
        type=int,
        default=100_000,
        metavar="N",
        help="without --source and --reference: how many ids may have no hypothesis (100000)",
    )
    parser.add_argument("--lenient", action="store_true", help="features without weight, and the reverse, count 0")


def _add_judgement(judged: argparse._ArgumentGroup) -> None:
    """What the choice is compared with, and what is reported of it."""
    judged.add_argument(
        "--reference",
        type=InputFile,
        action="append",
        default=[],
        metavar="FILE",
        help="report scores on stderr; repeatable",
    )
    judged.add_argument(
        "--significance",
        choices=["bs", "ar", "none"],
        default="bs",
        help="paired bootstrap, approximate randomisation or none (bs)",
    )
    judged.add_argument("--samples", type=int, default=0, metavar="N", help="samples of the test (sacrebleu's default)")
    add_word_limit(judged, "judged line")
    judged.add_argument(
        "--report", type=OutputFile, metavar="FILE", help="write all of it, with every sentence, as JSON"
    )
    judged.add_argument(
        "--known-words",
        type=InputFile,
        nargs=2,
        metavar=("SOURCE", "TARGET"),
        help="vocabularies, a word a line: also score the sentences whose words they all hold",
    )
    judged.add_argument(
        "--length-bounds", metavar="N,N,...", help="highest lengths of the parts (10,20,30,40,50,60)", default=""
    )
    judged.add_argument(
        "--no-oracle", action="store_true", help="leave out the best choice and chance, which take the longest"
    )
