"""``nmt-core score``: log p(target | source), one number a line."""

from __future__ import annotations

import argparse

from nmt_core.commands.options import OR_TRANSFORMER, add_device, add_models, add_precision, add_word_limit
from nmt_core.commands.parser import positive
from nmt_core.files import InputFile, OutputFile

RUN = "nmt_core.inference.commands.score:score_files"


_EPILOG = """\
examples:
  nmt-core score --model runs/en-fr test.tok.en test.tok.fr > logprobs
  nmt-core score --model runs/en-fr --alignments test.align test.tok.en test.tok.fr > logprobs
  nmt-core score --model runs/en-fr --per-word test.tok.en.gz hypotheses.fr
  nmt-core score --model runs/en-fr --raw test.en test.fr > logprobs
  paste -d '\\t' a.en a.fr | nmt-core score --model runs/en-fr - > logprobs

The natural logarithm of the probability of the whole target, its end counted, not normalised by
length. --per-word writes one number per target word and one for the end, separated by spaces.

A model of annotated text ('nmt-core annotate') scores plain pairs: unknown words come from the source word that
its lexicon says, or an equal one, or as --word-alignment says.

Text is as the model reads it. With --raw it is raw text, with --surface the words of a Moses system: a model trained on
text of 'nmt-core prepare' prepares these in the same way as its training text.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Define the options."""
    parser.epilog = _EPILOG
    add_models(parser, OR_TRANSFORMER)
    parser.add_argument(
        "source", type=InputFile, metavar="SOURCE", help="tokenised sources; without TARGET pairs: source, tab, target"
    )
    parser.add_argument("target", type=InputFile, nargs="?", metavar="TARGET", help="tokenised targets, line by line")
    parser.add_argument("--per-word", action="store_true", help="a number for every word")
    forms = parser.add_mutually_exclusive_group()
    forms.add_argument(
        "--raw", action="store_true", help="running text; numbers are for the words that the model reads"
    )
    forms.add_argument(
        "--surface", action="store_true", help="words as Moses has them; numbers are for these, not for subwords"
    )
    parser.add_argument(
        "--alignments",
        type=OutputFile,
        metavar="F",
        help="source-target points, a line per pair, from the attention to the given target; F.jsonl: the weights",
    )
    parser.add_argument(
        "--word-alignment",
        type=InputFile,
        metavar="F",
        help="word alignment of the text, lines such as 0-0 1-2, for models of annotated text ('nmt-core annotate')",
    )
    add_word_limit(parser, "source or target")
    parser.add_argument("--quiet", action="store_true", help="no progress on standard error")
    add_device(parser)
    add_precision(parser)
    parser.add_argument(
        "--softmax",
        choices=("full", "none"),
        default="full",
        help="normalise over all words, or over none, for models trained with self_normalization, which is not exact"
        " (default: full)",
    )
    parser.add_argument(
        "--window",
        type=positive,
        default=5000,
        metavar="N",
        help="pairs scored together; equal sources and equal beginnings are worked out once (default: 5000)",
    )
