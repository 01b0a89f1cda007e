"""What `smt-bridge tune` and `tune-loop` have in common: options of the tuner and the metric, and how scores are shown.

>>> show_score(-41.2, "ter"), METRIC_NAMES["ter"]
('41.20', 'TER')
"""

from __future__ import annotations

import argparse

from nmt_core.base.errors import ConfigError
from nmt_core.commands.options import add_word_limit

METRIC_NAMES = {"bleu": "BLEU", "chrf": "chrF2", "ter": "TER"}


def add_tuner_arguments(group: argparse._ActionsContainer) -> None:
    """Declare the options."""
    add = group.add_argument
    add("--tuner", choices=["mert", "mira", "pro"], default="mert", help="how to search (mert)")
    add("--metric", choices=list(METRIC_NAMES), default="bleu", help="what to make best (bleu)")
    add("--seed", type=int, default=1, metavar="N", help="seed of the first run (1)")
    add("--runs", type=int, default=3, metavar="N", help="runs with seeds N, N+1, ... (3)")
    add("--restarts", type=int, default=20, metavar="N", help="starting points of a MERT run (20)")
    add("--tokenize", metavar="NAME", help="sacrebleu's: none, 13a, intl, char, zh (none; with --detokenize 13a)")
    add("--detokenize", metavar="LANG", help="join the hypotheses to plain text first, as LANG is written")
    add_word_limit(group)


def check_tuner_options(args: argparse.Namespace) -> None:
    """Raise ConfigError for values that cannot be."""
    from smt_bridge.metrics.bleu import TOKENIZERS

    if args.runs < 1 or args.restarts < 0 or args.seed < 0:
        raise ConfigError("--runs must be at least 1, --restarts and --seed at least 0")
    if args.tokenize and args.tokenize not in TOKENIZERS:
        raise ConfigError(f"--tokenize knows {', '.join(TOKENIZERS)}, not '{args.tokenize}'")


def show_score(score: float, metric: str) -> str:
    """A score as people write it."""
    from smt_bridge.metrics.metric import as_reported

    return f"{as_reported(score, metric):.2f}"
