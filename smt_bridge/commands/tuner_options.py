"""Options of the tuner and the metric, which `smt-bridge tune` and `tune-loop` have in common."""

from __future__ import annotations

import argparse

from nmt_core.commands.options import add_word_limit
from nmt_core.commands.parser import from_zero, positive

METRICS = ("bleu", "chrf", "ter")
TOKENIZERS = ("none", "13a", "intl", "char", "zh")


def add_tuner_arguments(group: argparse._ActionsContainer) -> None:
    """Declare the options."""
    add = group.add_argument
    add("--tuner", choices=["mert", "mira", "pro"], default="mert", help="how to search (mert)")
    add("--metric", choices=METRICS, default="bleu", help="what to make best (bleu)")
    add("--seed", type=from_zero, default=1, metavar="N", help="seed of the first run (1)")
    add("--runs", type=positive, default=3, metavar="N", help="runs with seeds N, N+1, ... (3)")
    add("--restarts", type=from_zero, default=20, metavar="N", help="starting points of a MERT run (20)")
    add(
        "--tokenize",
        choices=TOKENIZERS,
        metavar="NAME",
        help="sacrebleu's: none, 13a, intl, char, zh (none; with --detokenize 13a)",
    )
    add("--detokenize", metavar="LANG", help="join the hypotheses to plain text first, as LANG is written")
    add_word_limit(group)
