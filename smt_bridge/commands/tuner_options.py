"""Options of the tuner and the metric, which `smt-bridge tune` and `tune-loop` have in common."""

from __future__ import annotations

import argparse

from nmt_core.commands.options import add_word_limit

METRICS = ("bleu", "chrf", "ter")
TOKENIZERS = ("none", "13a", "intl", "char", "zh")


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
    add("--metric", choices=METRICS, default="bleu", help="what to make best (bleu)")
    add(
        "--tokenize",
        choices=TOKENIZERS,
        metavar="NAME",
        help="sacrebleu's: none, 13a, intl, char, zh (none; with --detokenize 13a)",
    )
    add("--detokenize", metavar="LANG", help="join the hypotheses to plain text first, as LANG is written")
    add_word_limit(group)
