"""`smt-bridge translate`: Moses and a neural model as one translator."""

from __future__ import annotations

import argparse

from nmt_core.commands.options import add_word_limit
from nmt_core.commands.parser import positive
from nmt_core.files import InputFile, NamedInput, OutputFile
from smt_bridge.commands.options import (
    add_feature_argument,
    add_moses_arguments,
    add_moses_options,
    add_scoring_arguments,
)

RUN = "smt_bridge.hybrid.translate:translate_text"
_EXAMPLE = """example:
  # 1. lists of a development set, by the same path as later
  smt-bridge translate --moses-ini moses.ini --model runs/search --feature nmt:runs/search --feature wordcount \\
      --nbest-output dev.merged.gz < dev.tok.en > dev.moses.fr
  # 2. weights, and the recipe
  smt-bridge tune --nbest dev.merged.gz --reference dev.tok.fr --recipe hybrid.json --output weights
  # 3. translation
  smt-bridge translate --recipe hybrid.json < test.tok.en > test.fr
  # or without tuned weights: the neural model, guided by the n-grams of Moses' lists
  smt-bridge translate --moses-ini moses.ini --model runs/search --search guidance_weight=1 \\
      --write-recipe guided.json < test.tok.en > test.fr

keys of --search (a key alone is true):
  allow_unknown        the neural model may write <unk>
  graph_gap=G          in search graphs, take arcs whose best path is at most G below the best (1)
  graph_beam=N         the neural model's beam in search graphs (12)
  guidance_weight=W    translate without tuned weights: W of the n-grams of Moses' lists, 1 of log p (choose it on a
                       development set; 1 is a beginning)
  guidance_scale=A     a hypothesis of Moses' lists weighs exp(A times its total) (5)

The program `moses` must be on the PATH (or --moses PROGRAM); it runs in the current folder, where the paths of
moses.ini must be right. A Moses that dies is started again; a sentence that makes it die is translated by the
neural model alone."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.epilog = _EXAMPLE
    _add_translation(parser)
    _add_lists(parser.add_argument_group("how lists are made, where there is no recipe yet"))
    add_scoring_arguments(parser, workers=False)


def _add_translation(parser: argparse.ArgumentParser) -> None:
    """What is translated, by which recipe and which Moses."""
    add = parser.add_argument
    add("--recipe", type=InputFile, metavar="FILE", help="models, lists, features and weights, of `tune --recipe`")
    add_moses_arguments(parser)
    add("--moses-ini", type=InputFile, metavar="FILE", help="its moses.ini (the recipe's)")
    add("--degrade", action="store_true", help="where Moses cannot be used at all, go on with the neural model")
    add("--input", type=InputFile, default="-", metavar="FILE", help="source text, a sentence a line ('-')")
    add("--output", type=OutputFile, default="-", metavar="FILE", help="where the translations go ('-')")
    add("--raw", action="store_true", help="raw text in, raw text out, by --preparation")
    add(
        "--preparation",
        type=InputFile,
        default="",
        metavar="FILE",
        help="the preparation.json of Moses' text (the recipe's, the model's, or Moses' tokeniser)",
    )
    add("--nbest-output", type=OutputFile, metavar="FILE", help="also write the merged lists with all their columns")
    add_word_limit(parser)
    add("--quiet", action="store_true", help="no progress bar")


def _add_lists(made: argparse._ArgumentGroup) -> None:
    """The neural model, and what the lists of both systems have."""
    add = made.add_argument
    add("--model", metavar="SPEC", help="DIR, DIR,DIR (an ensemble), ct2:DIR, hf:DIR or grpc:HOST:PORT[/MODEL]")
    add(
        "--lists",
        metavar="SIZES",
        help="sizes of the lists (moses:100,nmt:12); with ,graph:12 also of a search in Moses' search graphs",
    )
    add("--beam", type=positive, metavar="N", help="the neural model's beam (12)")
    add(
        "--search",
        nargs="+",
        action="extend",
        default=[],
        metavar="KEY=VALUE",
        help="more about the search; the keys are below",
    )
    add_moses_options(made)
    add(
        "--exact",
        type=NamedInput,
        action="append",
        default=[],
        metavar="NAME[=LM]",
        help="as `add-features` has it; repeatable",
    )
    add_feature_argument(made, help="as `add-features` has it; repeatable")
    add("--write-recipe", type=OutputFile, metavar="FILE", help="with guidance, also write all that into a recipe")
