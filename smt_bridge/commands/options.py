"""Options that commands share: lists and features, how models score, the Moses that runs, tuner and metric."""

from __future__ import annotations

import argparse
import math
import shlex

from nmt_core.base.errors import ConfigError
from nmt_core.commands.options import add_word_limit
from nmt_core.commands.parser import positive
from nmt_core.files import InputFile
from smt_bridge.metrics.names import METRIC_NAMES, TOKENIZERS
from smt_bridge.moses.process import check_further_options


class FeatureSpec(InputFile):
    """``kenlm:FILE``, ``mbrbleu:posterior``, ``wordcount``; ``path`` is also the directory of a model."""

    @property
    def path(self) -> str:
        """The file; empty where the feature takes none."""
        name, _, file = self.partition(":")
        return "" if name == "mbrbleu" else file  # whose argument is a kind of weights


def add_format_argument(parser: argparse.ArgumentParser) -> None:
    """Declare ``--nbest-format``; its value is the ``format`` of ``read_entries`` and ``ordered_lists``."""
    parser.add_argument(
        "--nbest-format",
        default="auto",
        metavar="NAME",
        help="moses, factors:N, scored, fairseq or lines:N (auto: by the first lines, but for lines:N)",
    )


def add_feature_argument(parser: argparse._ActionsContainer, *, help: str) -> None:
    """Declare ``--feature``, which may be repeated."""
    parser.add_argument("--feature", type=FeatureSpec, action="append", default=[], metavar="NAME[:ARG]", help=help)


def add_scoring_arguments(parser: argparse.ArgumentParser, *, workers: bool = True) -> None:
    """Declare how models score: in worker processes, or in the only process, on one device."""
    group = parser.add_argument_group("how to score")
    add = group.add_argument
    add("--dtype", default="float32", help="float32, or bfloat16, on a GPU tf32: faster, not exact (float32)")
    add(
        "--softmax",
        choices=("full", "none"),
        default="full",
        help="normalise over all words, or over none, for models trained with self_normalization, which is not exact"
        " (full)",
    )
    if not workers:
        add("--device", default="auto", help="auto, cpu, cuda or cuda:N (auto)")
        return
    add("--devices", metavar="LIST", help="such as cuda:0,cuda:1 or cpu (default: what there is)")
    add(
        "--jobs",
        type=positive,
        metavar="N",
        help="worker processes, each with its own models (one per core, or per GPU)",
    )


def add_moses_arguments(group: argparse._ActionsContainer) -> None:
    """Declare ``--moses``, ``--moses-threads`` and ``--moses-timeout``."""
    add = group.add_argument
    add("--moses", default="moses", metavar="PROGRAM", help="the decoder (moses)")
    add("--moses-threads", type=positive, default=1, metavar="N", help="its threads (1)")
    add("--moses-timeout", type=_seconds, default=60.0, metavar="S", help="seconds it may take for a sentence (60)")


def add_moses_options(group: argparse._ActionsContainer) -> None:
    """Declare ``--moses-options``."""
    group.add_argument(
        "--moses-options",
        type=_words,
        default=(),
        metavar="TEXT",
        help="further options, such as '-search-algorithm 1'",
    )


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not 0.0 < seconds < 1e9:
        raise argparse.ArgumentTypeError(f"expected a number of seconds above 0, found {text!r}")
    return seconds


def _words(text: str) -> tuple[str, ...]:
    """The words as a shell takes them apart; commands give some options themselves."""
    try:
        words = tuple(shlex.split(text))
        check_further_options(words, graphs=False)
    except (ValueError, ConfigError) as error:
        raise argparse.ArgumentTypeError(str(error)) from error
    return words


def add_tuner_arguments(group: argparse._ActionsContainer) -> None:
    """Declare the options."""
    add = group.add_argument
    add(
        "--tuner",
        action="append",
        default=[],
        metavar="NAME|KEY=VALUE",
        help="how to search: mert, mira or pro (mert), and its keys: runs=3 with seeds seed=1, 2, ...; restarts=20 of"
        " MERT; passes=60, c=0.01, decay=0.999 of MIRA; repeatable",
    )
    add("--metric", choices=[*METRIC_NAMES], default="bleu", help="what to make best (bleu)")
    add(
        "--tokenize",
        choices=TOKENIZERS,
        metavar="NAME",
        help="sacrebleu's: none, 13a, intl, char, zh (none; with --detokenize 13a)",
    )
    add("--detokenize", metavar="LANG", help="join the hypotheses to plain text first, as LANG is written")
    add_word_limit(group)
