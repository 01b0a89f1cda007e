"""The options that several commands share."""

from __future__ import annotations

import argparse
import math

from nmt_core.base.words import MOST_WORDS
from nmt_core.commands.parser import positive
from nmt_core.files import InputFile


def add_models(group: argparse._ActionsContainer) -> None:
    """``--model``, which may be given several times."""
    group.add_argument(
        "--model",
        type=InputFile,
        action="append",
        required=True,
        metavar="DIR",
        help="model folder; several make an ensemble",
    )


def add_device(group: argparse._ActionsContainer) -> None:
    """``--device``: one device."""
    group.add_argument("--device", default="auto", help="auto, cpu, cuda or cuda:N (default: auto)")


def add_precision(group: argparse._ActionsContainer) -> None:
    """``--dtype``: the numbers that models are computed with."""
    group.add_argument("--dtype", default="float32", help="float32, float64, bfloat16, or tf32 on a GPU (float32)")


def add_part_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("--shards", metavar="A-B", help="do only these parts of the work, counted from 1; needs files")
    parser.add_argument("--restart", action="store_true", help="throw away what an earlier command has done")
    add_engine_arguments(parser)


def add_engine_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare those that say where the work is done."""
    group = parser.add_argument_group("where to work")
    group.add_argument(
        "--engine", choices=("local", "ray"), default="local", help="processes of this machine, or Ray's actors (local)"
    )
    group.add_argument(
        "--ray-address", metavar="ADDRESS", help="of a Ray cluster (RAY_ADDRESS, else one begun for the command)"
    )
    group.add_argument(
        "--gpus-per-job", type=float, default=0.0, metavar="F", help="with Ray: GPUs of a worker, such as 0.125 (0)"
    )


def add_word_limit(parser: argparse._ActionsContainer, what: str = "line") -> None:
    """Declare ``--max-words``."""
    parser.add_argument(
        "--max-words",
        type=positive,
        default=MOST_WORDS,
        metavar="N",
        help=f"refuse a {what} of more words (default: {MOST_WORDS})",
    )


def add_long_lines(parser: argparse._ActionsContainer) -> None:
    """Declare ``--max-words`` and ``--long-lines``."""
    add_word_limit(parser)
    parser.add_argument(
        "--long-lines",
        choices=("refuse", "split"),
        default="refuse",
        help="lines of more than --max-words: an error, or translated in pieces, at ends of sentences where they can be"
        " (default: refuse)",
    )


def add_search_options(group: argparse._ArgumentGroup) -> None:
    """How to search."""
    add = group.add_argument
    add("--beam", type=int, metavar="K", help="hypotheses followed (default: 12, or N of --nbest if more)")
    add("--length-normalization", type=float, metavar="A", help="rank by log p / length^A (default: 1)")
    add("--length-penalty", type=float, metavar="A", help="rank by log p / ((5 + length) / 6)^A, as GNMT does")
    add(
        "--coverage-penalty",
        type=float,
        metavar="B",
        help="add B x sum over source words of log min(its attention, 1), as GNMT does (needs attention)",
    )
    add("--no-repeat-ngram", type=int, metavar="N", help="no N words twice in a translation")
    add("--min-length", type=int, metavar="N", help="at least N words")
    add("--max-length-ratio", type=float, metavar="R", help="at most R x source words + 10 (default: 2)")
    add("--forbid-unk", action="store_true", help="never write <unk>")
    add(
        "--candidates",
        type=int,
        metavar="K",
        help="look at the K most frequent words and the likeliest translations of the source words in --lexicon alone",
    )
    add(
        "--candidates-replace",
        action="store_true",
        help="K words in all: those of --lexicon take the place of the least frequent, as WMT'15's systems had it",
    )
    add("--candidates-per-word", type=int, default=10, metavar="K", help="from --lexicon, a source word (default: 10)")


def add_sampling_options(group: argparse._ArgumentGroup) -> None:
    """How to sample."""
    add = group.add_argument
    add("--sample", type=int, metavar="N", help="draw N translations instead of searching")
    add("--temperature", type=float, metavar="T", help="of --sample (default: 1)")
    add("--top-k", type=int, metavar="K", help="draw from the K likeliest words of each step (default: from all)")
    add("--seed", type=int, metavar="N", help="of --sample (default: 1)")


def add_language_model_options(group: argparse._ArgumentGroup) -> None:
    """Define them."""
    add = group.add_argument
    add(
        "--lm",
        type=InputFile,
        metavar="F",
        help="re-rank the beam's translations with this n-gram model, ARPA or KenLM's binary",
    )
    add("--lm-weight", type=weight, metavar="B", help="of --lm; see 'nmt-core tune-lm'")
    add(
        "--fusion-lm",
        type=InputFile,
        metavar="DIR",
        help="a model folder of type rnnlm or cslm that has a say at every step of search",
    )
    add("--fusion-weight", type=weight, metavar="B", help="of --fusion-lm")


def weight(text: str) -> float:
    """A weight from the command line."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 <= value < math.inf:
        raise argparse.ArgumentTypeError(f"expected a number from 0 up, found {text!r}")
    return value


_RULES = ("copy", "lexicon", "lexicon-lowercase")


def add_unknown_options(group: argparse._ArgumentGroup) -> None:
    """Define them."""
    group.add_argument(
        "--replace-unk",
        choices=_RULES,
        help="write the source word looked at most instead of <unk>, or its lexicon entry (needs attention, or a"
        " model of annotated text)",
    )
    group.add_argument(
        "--lexicon", type=InputFile, metavar="F", help="target-source-probability lines; see 'nmt-core lexicon'"
    )


_XML_MODES = ("exclusive", "inclusive", "ignore", "pass-through")


def add_constraint_options(group: argparse._ArgumentGroup) -> None:
    """Define them."""
    add = group.add_argument
    add(
        "--prefix",
        type=InputFile,
        metavar="F",
        help="a line for each source line: the words that its translation begins with",
    )
    add(
        "--constraints",
        type=InputFile,
        metavar="F",
        help="a line for each source line: phrases that its translation contains, separated by tabs;"
        " ' || ' separates alternatives",
    )
    add(
        "--xml-input",
        choices=_XML_MODES,
        default="pass-through",
        help='Moses\' markup in the source, <np translation="a||b" prob="0.7||0.3">words</np>: one of the'
        " translations is used, competes, markup is taken out, or is text (default: pass-through)",
    )


def add_advice_options(group: argparse._ArgumentGroup) -> None:
    """Define them."""
    add = group.add_argument
    add(
        "--advice",
        type=InputFile,
        metavar="F",
        help="posteriors of n-grams, 'line ||| n-gram ||| p', lines counted from 0: translations that have likely ones"
        " rank higher",
    )
    add("--advice-weight", type=float, metavar="W", help="of --advice; log p has weight 1 (default: 0.3)")
    add(
        "--advice-factors",
        metavar="A,B,...",
        help="how much n-grams of 1, 2, ... words count (default: 1,0.6,0.1,0.5)",
    )
    add(
        "--advice-joined",
        action="store_true",
        help="n-grams are of whole words, whose parts the model writes with @@ behind all but the last",
    )
