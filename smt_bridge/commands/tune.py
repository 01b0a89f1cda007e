"""`smt-bridge tune`: weights for the features of an n-best list that make a metric best."""

from __future__ import annotations

import argparse
from typing import Any

from nmt_core.files import InputFile, OutputFile
from smt_bridge.commands.options import add_format_argument, add_tuner_arguments

RUN = "smt_bridge.tuning.run:tune"
_EXAMPLE = """examples:
  smt-bridge tune --nbest val.rich.gz --reference val.tok.fr --output weights
  smt-bridge tune --nbest val.rich.gz --reference val.fr --detokenize fr --start moses.ini --output weights
  smt-bridge tune --nbest val.rich.gz --reference val.tok.fr --tuner mira --metric chrf --output weights
  smt-bridge tune --nbest val.rich.gz --reference val.tok.fr --tuner folds=5 --report tuning.json > weights
  smt-bridge tune --features-dat features.dat --scores-dat scores.dat --output weights

Of a merged list are tuned: Total and Rank of each system, In of all but the last, what --exact computed, and what
add-features added.
The list is tokenised text, and so must the reference be, unless --detokenize joins the hypotheses to plain
text first: then the reference is plain text and BLEU is what sacrebleu reports by default (13a).

--tuner folds=K also tunes on K-1 of K parts, K times, and scores the rest; of a merged list by five folds: the best
system alone is the result where held-out sentences show it to be better than the tuned weights."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.epilog = _EXAMPLE
    _add_inputs(parser)
    add_tuner_arguments(parser)
    add = parser.add_argument
    add("--start", type=InputFile, metavar="WEIGHTS", help="weights to begin with, such as moses.ini (all equal)")
    add("--features", metavar="A,B,...", help="tune these only; the others keep their start weight, or 0")
    _add_outputs(parser)


def _add_inputs(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--nbest", type=InputFile, metavar="FILE", help="n-best list of a development set, '-' for stdin")
    add_format_argument(parser)
    more: dict[str, Any] = {"type": InputFile, "action": "append", "default": [], "metavar": "FILE"}
    add("--reference", **more, help="one line per id; repeatable")
    add("--features-dat", **more, help="instead of the list: features of Moses' extractor; repeatable, and then joined")
    add("--scores-dat", **more, help="and its BLEU counts; as often as --features-dat")


def _add_outputs(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--report", type=OutputFile, metavar="FILE", help="all that was found, as JSON (docs/lists.md)")
    add("--recipe", type=OutputFile, metavar="FILE", help="the weights with all that made the list, for `translate`")
    add("--output", type=OutputFile, default="-", metavar="FILE", help="where the weights go ('-')")
